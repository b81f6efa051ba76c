#include "gemm/model_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "gemm/error.h"
#include "gemm/model_config.h"
#include "gemm/model_types.h"
#include "gemm/text_file.h"

namespace gemmtune {
namespace {

constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;
// vLLM's and Megatron's padding of the embedding, so that it can be sharded.
constexpr int64_t kVocabularyPadding = 64;
constexpr int64_t kMaxLayers = 10000;

constexpr std::array<std::string_view, 3> kAttentionLayers = {"full_attention", "sliding_attention",
                                                              "chunked_attention"};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// The rows of one configuration in the making.
class Derivation {
 public:
  Derivation(ModelConfig& config, int tensor_parallel) : config_(config), tp_(tensor_parallel) {}

  ModelShapes run() {
    std::string_view architecture = open();
    bool has_head = require_architecture(architecture);
    hidden_ = config_.size(type_->hidden);
    layers_ = config_.size(type_->layers);
    if (layers_ > kMaxLayers) config_.refuse(fmt::format("{} layers: more than {}", layers_, kMaxLayers));
    require_attention_layers();
    type_->attention == Attention::grouped ? grouped_attention() : latent_attention();
    type_->experts.experts.empty() ? dense_layers(layers_, "") : expert_layers();
    if (has_head) language_head();
    if (type_->predicts_tokens) token_prediction();
    require_known_structure();
    remark_class_defaults();
    shapes_.keys_read = config_.keys_read();
    shapes_.keys_defaulted = config_.keys_defaulted();
    return std::move(shapes_);
  }

 private:
  /// Finds the row, enters text_config where the language model lies there, and returns the outer
  /// architecture.
  std::string_view open() {
    shapes_.model_type = only_text("model_type");
    architectures_ = config_.texts("architectures");
    remark_quantization();
    const WrapperType* wrapper = find_wrapper_type(shapes_.model_type);
    if (!wrapper) {
      type_ = &known_type(shapes_.model_type);
      config_.use_class_defaults(type_->name, type_->defaults);
      return type_->architecture;
    }
    bool has_vision = config_.has("vision_config");
    config_.enter("text_config");
    type_ =
        &known_type(config_.has("model_type") ? only_text("model_type") : std::string(wrapper->text_type));
    config_.use_class_defaults(type_->name, type_->defaults);
    shapes_.remarks.push_back(
        fmt::format("the language model is the {} under text_config{}", type_->name,
                    has_vision ? "; the vision tower and its projector are not listed" : ""));
    return wrapper->architecture;
  }

  std::string only_text(std::string_view key) {
    std::vector<std::string> found = config_.texts(key);
    if (found.size() != 1 || found[0].empty()) config_.refuse(fmt::format("{} is not one name", key));
    return found[0];
  }

  const ModelType& known_type(const std::string& name) {
    if (const ModelType* type = find_model_type(name)) return *type;
    std::string near = nearest_model_type(name);
    config_.refuse(fmt::format("model_type '{}' is not understood{}: known are {}", printable(name),
                               near.empty() ? "" : fmt::format(" (nearest known: '{}')", near),
                               fmt::join(model_type_names(), ", ")));
  }

  /// Whether the model has an lm_head. A file without architectures describes the model as its type does.
  bool require_architecture(std::string_view expected) {
    if (architectures_.empty()) return true;
    std::string expected_lower = lower(std::string(expected));
    for (const std::string& found : architectures_)
      if (lower(found) == expected_lower) return true;
    std::string family =
        expected_lower.substr(0, std::min(expected_lower.find("for"), expected_lower.find("lmhead")));
    for (std::string_view headless : {"Model", "ForSequenceClassification", "ForTokenClassification"})
      if (lower(architectures_[0]) == family + lower(std::string(headless))) {
        shapes_.remarks.push_back(fmt::format("{} has no lm_head: left out", architectures_[0]));
        return false;
      }
    config_.refuse(fmt::format("architecture '{}' is not understood for model_type '{}': expected {}",
                               printable(architectures_[0]), shapes_.model_type, expected));
  }

  void require_attention_layers() {
    for (const std::string& kind : config_.texts("layer_types"))
      if (std::ranges::find(kAttentionLayers, kind) == kAttentionLayers.end())
        config_.refuse(fmt::format("layer_types has '{}': only attention layers are understood ({})",
                                   printable(kind), fmt::join(kAttentionLayers, ", ")));
  }

  void require_known_structure() {
    for (std::string_view key : structural_keys())
      if (config_.is_set(key) && !config_.was_read(key))
        config_.refuse(fmt::format("{} is not understood for model_type '{}': its shapes would be wrong", key,
                                   type_->name));
  }

  void add(std::string_view name, int64_t n, int64_t k, int64_t count, std::string note = "") {
    if (n > kMaxSize || k > kMaxSize)
      config_.refuse(fmt::format("{} would be {} x {}: sizes above {} cannot be", name, n, k, kMaxSize));
    if (count > 0) shapes_.projections.push_back({std::string(name), n, k, count, std::move(note)});
  }

  /// Factors are below 2^31, or 2^33 for sums, so only their product needs a guard.
  int64_t product(int64_t a, int64_t b, std::string_view what) {
    if (b > 0 && a > kMaxSize / b)
      config_.refuse(fmt::format("{} {} x {} is larger than {}", what, a, b, kMaxSize));
    return a * b;
  }

  /// What one of the tensor-parallel ranks holds.
  int64_t share(int64_t total, std::string_view what) {
    if (total % tp_ == 0) return total / tp_;
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= std::min<int64_t>(total, 1024); ++d)
      if (total % d == 0) divisors.push_back(d);
    config_.refuse(fmt::format("{} {} is not divisible by tensor parallelism {}: choose one of {}", what,
                               total, tp_, fmt::join(divisors, ", ")));
  }

  int64_t read_heads() {
    int64_t heads = config_.size(type_->heads);
    share(heads, type_->heads.front());
    return heads;
  }

  int64_t read_kv_heads(int64_t heads) {
    if (type_->multi_query_flags && !config_.flag("new_decoder_architecture", false))
      return config_.flag("multi_query", true) ? 1 : heads;
    if (type_->kv_heads.empty()) return heads;
    int64_t kv_heads = config_.size_or(type_->kv_heads, heads, type_->heads.front());
    if (heads % kv_heads != 0)
      config_.refuse(
          fmt::format("{} query heads are not divisible by {} {}", heads, type_->kv_heads.front(), kv_heads));
    return kv_heads;
  }

  void grouped_attention() {
    int64_t heads = read_heads(), kv_heads = read_kv_heads(heads);
    if (!config_.has("head_dim") && hidden_ % heads != 0)
      config_.refuse(fmt::format("{} {} is not divisible by {} {}, and there is no head_dim",
                                 type_->hidden.front(), hidden_, type_->heads.front(), heads));
    int64_t head_dim = config_.size_or({"head_dim"}, hidden_ / heads,
                                       fmt::format("{} / {}", type_->hidden.front(), type_->heads.front()));
    std::string note;
    int64_t kv_share = 1;
    if (kv_heads >= tp_) {
      kv_share = share(kv_heads, "the number of key-value heads");
    } else {
      if (tp_ % kv_heads != 0)
        config_.refuse(
            fmt::format("{} key-value heads cannot be replicated over tensor parallelism {}: choose a "
                        "multiple or a divisor of {}",
                        kv_heads, tp_, kv_heads));
      note = fmt::format("each of {} kv heads replicated on {} ranks", kv_heads, tp_ / kv_heads);
    }
    int64_t q_width = product(heads / tp_, head_dim, "attention");
    add("qkv fused", product(heads / tp_ + 2 * kv_share, head_dim, "qkv"), hidden_, layers_, note);
    add("o", hidden_, q_width, layers_);
  }

  void latent_attention() {
    int64_t heads = read_heads(), local = heads / tp_;
    std::optional<int64_t> q_rank = config_.size_or_null("q_lora_rank");
    int64_t kv_rank = config_.size({"kv_lora_rank"});
    int64_t nope = config_.size({"qk_nope_head_dim"}), rope = config_.size({"qk_rope_head_dim"});
    int64_t value = config_.size({"v_head_dim"});
    if (q_rank && *q_rank > 0) {
      add("q_a + kv_a fused", *q_rank + kv_rank + rope, hidden_, layers_, "replicated");
      add("q_a alone", *q_rank, hidden_, layers_, "replicated, where q_a and kv_a are not fused");
      add("kv_a alone", kv_rank + rope, hidden_, layers_, "replicated, where q_a and kv_a are not fused");
      add("q_b", product(local, nope + rope, "q_b"), *q_rank, layers_);
      shapes_.remarks.push_back(
          "q_a and kv_a are listed fused and alone: an engine runs one or the other, remove what yours does "
          "not run");
    } else {
      add("q", product(local, nope + rope, "q"), hidden_, layers_);
      add("kv_a alone", kv_rank + rope, hidden_, layers_, "replicated");
    }
    add("kv_b", product(local, nope + value, "kv_b"), kv_rank, layers_);
    add("o", hidden_, product(local, value, "attention"), layers_);
    shapes_.remarks.push_back(
        fmt::format("absorbed MLA decode replaces kv_b by batched GEMMs over {} heads (N {} K {} and N {} K "
                    "{}), which are not "
                    "listed",
                    local, kv_rank, nope, value, kv_rank));
  }

  void dense_layers(int64_t count, std::string_view prefix) {
    if (count == 0) return;
    int64_t width = type_->width_may_be_absent ? config_.size_or(type_->width, 4 * hidden_,
                                                                 fmt::format("4 * {}", type_->hidden.front()))
                                               : config_.size(type_->width);
    mlp(prefix, share(width, type_->width.front()), count);
  }

  void mlp(std::string_view prefix, int64_t width, int64_t count) {
    if (type_->mlp == Mlp::plain) {
      add(fmt::format("{}up (fc1, no gate)", prefix), width, hidden_, count);
      add(fmt::format("{}down (fc2)", prefix), hidden_, width, count);
    } else {
      add(fmt::format("{}gate+up{}", prefix, prefix.empty() ? " fused" : ""), 2 * width, hidden_, count);
      add(fmt::format("{}down", prefix), hidden_, width, count);
    }
  }

  int64_t count_expert_layers() {
    const ExpertKeys& keys = type_->experts;
    int64_t first = keys.first_dense.empty() ? 0 : config_.size({keys.first_dense}, 0);
    int64_t step = keys.sparse_step.empty() ? 1 : config_.size({keys.sparse_step});
    int64_t frequency = keys.layer_freq.empty() ? 1 : config_.size_or({keys.layer_freq}, 1, "class default");
    std::set<int64_t> dense;
    if (!keys.dense_layers.empty()) {
      std::vector<int64_t> listed = config_.numbers(keys.dense_layers);
      dense.insert(listed.begin(), listed.end());
    }
    int64_t count = 0;
    for (int64_t layer = 0; layer < layers_; ++layer)
      if (layer >= first && (layer + 1) % step == 0 && layer % frequency == 0 && !dense.contains(layer))
        ++count;
    return count;
  }

  void expert_layers() {
    const ExpertKeys& keys = type_->experts;
    int64_t experts = config_.size(keys.experts), top_k = config_.size(keys.top_k);
    if (top_k > experts)
      config_.refuse(
          fmt::format("{} {} is more than {} {}", keys.top_k.front(), top_k, keys.experts.front(), experts));
    int64_t count = count_expert_layers();
    dense_layers(layers_ - count, "dense ");
    if (count == 0) return;
    int64_t width = config_.size({keys.width});
    add("router", experts, hidden_, count, "replicated");
    if (!keys.shared_count.empty()) {
      int64_t shared = config_.size_or_null(keys.shared_count).value_or(0);
      if (shared > 0) mlp("shared ", share(product(shared, width, "shared experts"), keys.width), count);
    }
    if (!keys.shared_width.empty()) {
      mlp("shared ", share(config_.size({keys.shared_width}), keys.shared_width), count);
      add("shared gate", 1, hidden_, count, "replicated");
    }
    size_t first_expert_row = shapes_.projections.size();
    mlp("expert ", share(width, keys.width), count);
    for (size_t i = first_expert_row; i < shapes_.projections.size(); ++i) {
      Projection& row = shapes_.projections[i];
      row.experts = experts;
      row.top_k = top_k;
      row.note = fmt::format("x{} experts, top-{}", experts, top_k);
    }
    remark_experts(experts, width);
  }

  void language_head() {
    int64_t vocabulary = config_.size({"vocab_size"});
    int64_t padded = (vocabulary + kVocabularyPadding - 1) / kVocabularyPadding * kVocabularyPadding;
    std::string note;
    if (padded != vocabulary) note = fmt::format("vocabulary {} padded to {}", vocabulary, padded);
    add("lm_head", share(padded, "the vocabulary"), hidden_, 1, note);
    shapes_.remarks.push_back(
        "lm_head is listed with all tokens; in prefill an engine runs it on the last token of each sequence "
        "only");
  }

  void token_prediction() {
    constexpr std::string_view key = "num_nextn_predict_layers";
    if (!config_.is_set(key)) return;
    int64_t extra = config_.size({key});
    add("MTP eh_proj", hidden_, 2 * hidden_, extra, "replicated");
    shapes_.remarks.push_back(fmt::format(
        "multi-token prediction ({} {}) runs the shapes of a layer with experts and lm_head {} more; "
        "counts are those of the main model",
        key, extra, extra == 1 ? "once" : fmt::format("{} times", extra)));
  }

  void remark_experts(int64_t experts, int64_t width) {
    shapes_.remarks.push_back(
        "expert rows: M is what one expert sees on average (tokens x top-k / experts, rounded up, at least "
        "1); the "
        "count is layers, not experts");
    if (tp_ > 1 && experts % tp_ == 0)
      shapes_.remarks.push_back(fmt::format(
          "experts are sliced in their width; expert parallelism {} runs {} whole experts a rank instead: {} "
          "x {} and "
          "{} x {}",
          tp_, experts / tp_, (type_->mlp == Mlp::gated ? 2 : 1) * width, hidden_, hidden_, width));
  }

  void remark_quantization() {
    if (!config_.is_set("quantization_config")) return;
    shapes_.remarks.push_back(
        "quantization_config: an engine may pad or split quantised weights; these are the sizes of the model "
        "itself");
  }

  void remark_class_defaults() {
    if (config_.class_defaults_used().empty()) return;
    shapes_.remarks.push_back(fmt::format("not in the file, taken from the defaults of model class {}: {}",
                                          type_->name, fmt::join(config_.class_defaults_used(), ", ")));
  }

  ModelConfig& config_;
  const int64_t tp_;
  const ModelType* type_ = nullptr;
  std::vector<std::string> architectures_;
  int64_t hidden_ = 0, layers_ = 0;
  ModelShapes shapes_;
};

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

ModelShapes model_shapes(const std::filesystem::path& config, int tensor_parallel) {
  if (tensor_parallel < 1)
    throw UsageError(fmt::format("tensor parallelism {}: must be at least 1", tensor_parallel));
  ModelConfig reader(config);
  return Derivation(reader, tensor_parallel).run();
}

int64_t rows_of(const Projection& projection, int64_t tokens) {
  if (projection.experts == 0) return tokens;
  return std::max<int64_t>(1, (tokens * projection.top_k + projection.experts - 1) / projection.experts);
}

std::vector<ListedShape> shapes_for_tokens(const ModelShapes& model, std::span<const int64_t> tokens) {
  std::vector<ListedShape> shapes;
  std::set<int64_t> seen;
  for (int64_t count : tokens) {
    if (count < 1 || count > kMaxSize)
      throw UsageError(fmt::format("{} tokens: give a number from 1 to {}", count, kMaxSize));
    if (!seen.insert(count).second) continue;
    for (const Projection& p : model.projections) {
      int64_t rows = rows_of(p, count);
      std::string name = fmt::format("{}, {}", p.name, counted(count, "token"));
      if (p.experts > 0) name += fmt::format(" -> {} an expert", counted(rows, "row"));
      shapes.push_back({{rows, p.n, p.k}, name, static_cast<double>(p.count)});
    }
  }
  return shapes;
}

}  // namespace gemmtune
