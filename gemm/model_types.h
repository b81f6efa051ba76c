// The model types whose projections are known: one row of data each. A new type of a known structure is a new
// row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/model_config.h"

namespace gemmtune {

/// Grouped: one fused qkv. Latent: DeepSeek's MLA, queries and keys through low-rank projections.
enum class Attention { grouped, latent };
/// Gated: gate and up fused, then down. Plain: up and down alone.
enum class Mlp { gated, plain };

/// Keys of a mixture of experts. Without `experts` the model is dense; keys left empty do not exist for the
/// type.
struct ExpertKeys {
  KeyNames experts = {};
  KeyNames top_k = {"num_experts_per_tok"};
  std::string_view width = {};         ///< of one expert; dense layers take KeyNames `width` of the type
  std::string_view first_dense = {};   ///< so many layers in front are dense
  std::string_view sparse_step = {};   ///< every so many layers one has experts: (layer + 1) % step == 0
  std::string_view layer_freq = {};    ///< the same, counted layer % step == 0
  std::string_view dense_layers = {};  ///< list of layers that are dense
  std::string_view shared_count = {};  ///< experts that see every token, each of `width`
  std::string_view shared_width = {};  ///< or the width of the only one, which then has a gate of one column
};

struct ModelType {
  std::string_view name;
  std::string_view architecture;  ///< the class with an lm_head
  Mlp mlp = Mlp::gated;
  /// Defaults of the class. They fill nested objects, and forbid to derive a key at the top level that has
  /// one.
  std::vector<ClassDefault> defaults = {};
  ExpertKeys experts = {};
  Attention attention = Attention::grouped;
  KeyNames hidden = {"hidden_size"};
  KeyNames layers = {"num_hidden_layers"};
  KeyNames heads = {"num_attention_heads"};
  KeyNames kv_heads = {"num_key_value_heads"};  ///< empty: as many as query heads
  KeyNames width = {"intermediate_size"};
  bool width_may_be_absent = false;  ///< then it is 4 * hidden
  bool multi_query_flags = false;  ///< falcon: multi_query means one kv head, unless new_decoder_architecture
  bool predicts_tokens = false;    ///< may carry multi-token-prediction layers
};

/// A model type that holds its language model under text_config.
struct WrapperType {
  std::string_view name;
  std::string_view architecture;
  std::string_view text_type;  ///< class of text_config where it does not say
};

const ModelType* find_model_type(std::string_view name);
const WrapperType* find_wrapper_type(std::string_view name);
std::vector<std::string> model_type_names();
/// The known type that reads most like an unknown one: by spelling, else by the longest common beginning; or
/// empty.
std::string nearest_model_type(std::string_view name);

/// Keys that change which GEMMs a model has. One that is set but was not read means a structure that the row
/// does not know.
std::span<const std::string_view> structural_keys();

}  // namespace gemmtune
