// From a model's Hugging Face config.json to the GEMMs of one forward pass. Only known structures are read: a
// model type without a row in model_types.cc, or a row's model with keys that the row does not know, is
// refused and never guessed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gemm/shape_list.h"

namespace gemmtune {

/// One linear layer on one tensor-parallel rank: C[M,N] = A[M,K] x W^T with W [N,K], M rows of tokens.
struct Projection {
  std::string name;
  int64_t n = 0, k = 0;
  int64_t count = 1;               ///< how often it runs in one forward pass: once a layer that has it
  std::string note = {};           ///< "replicated", "x128 experts, top-8"
  int64_t experts = 0, top_k = 0;  ///< of a routed expert, whose M is only a share of the tokens; else 0
  bool operator==(const Projection&) const = default;
};

struct ModelShapes {
  std::string model_type;
  std::vector<Projection> projections;
  std::vector<std::string> keys_read;       ///< "hidden_size = 4096"
  std::vector<std::string> keys_defaulted;  ///< "head_dim = 128 (hidden_size / num_attention_heads)"
  std::vector<std::string> remarks;
  bool operator==(const ModelShapes&) const = default;
};

/// `config` is a config.json or its folder. `tensor_parallel` is the number of GPUs that share each layer.
/// Throws UsageError.
ModelShapes model_shapes(const std::filesystem::path& config, int tensor_parallel);

/// Rows that one routed expert sees on average, rounded up, at least 1; all tokens for any other projection.
int64_t rows_of(const Projection& projection, int64_t tokens);

/// One shape for each token count and projection, named "qkv fused, 256 tokens", with the count as weight. A
/// repeated token count is taken once. Throws UsageError for a count below 1 or above 2^31-1.
std::vector<ListedShape> shapes_for_tokens(const ModelShapes& model, std::span<const int64_t> tokens);

}  // namespace gemmtune
