#include "gemm/model_types.h"

#include <algorithm>
#include <array>

#include "gemm/suggest.h"

namespace gemmtune {
namespace {

// Defaults are those of transformers' configuration classes. Types that occur inside a text_config list all
// sizes; the others only the keys that would else be derived (kv heads, head_dim), so that a file without
// them is refused.
const std::vector<ModelType>& table() {
  static const ExpertKeys deepseek_experts = {.experts = {"n_routed_experts"},
                                              .width = "moe_intermediate_size",
                                              .first_dense = "first_k_dense_replace",
                                              .layer_freq = "moe_layer_freq",
                                              .shared_count = "n_shared_experts"};
  static const std::vector<ModelType> types = {
      {"llama",
       "LlamaForCausalLM",
       Mlp::gated,
       {{"vocab_size", 32000},
        {"hidden_size", 4096},
        {"intermediate_size", 11008},
        {"num_hidden_layers", 32},
        {"num_attention_heads", 32}}},
      {"mistral",
       "MistralForCausalLM",
       Mlp::gated,
       {{"vocab_size", 32000},
        {"hidden_size", 4096},
        {"intermediate_size", 14336},
        {"num_hidden_layers", 32},
        {"num_attention_heads", 32},
        {"num_key_value_heads", 8}}},
      {"qwen2",
       "Qwen2ForCausalLM",
       Mlp::gated,
       {{"vocab_size", 151936},
        {"hidden_size", 4096},
        {"intermediate_size", 22016},
        {"num_hidden_layers", 32},
        {"num_attention_heads", 32},
        {"num_key_value_heads", 32}}},
      {"qwen3",
       "Qwen3ForCausalLM",
       Mlp::gated,
       {{"vocab_size", 151936},
        {"hidden_size", 4096},
        {"intermediate_size", 22016},
        {"num_hidden_layers", 32},
        {"num_attention_heads", 32},
        {"num_key_value_heads", 32},
        {"head_dim", 128}}},
      {"gemma",
       "GemmaForCausalLM",
       Mlp::gated,
       {{"vocab_size", 256000},
        {"hidden_size", 3072},
        {"intermediate_size", 24576},
        {"num_hidden_layers", 28},
        {"num_attention_heads", 16},
        {"num_key_value_heads", 16},
        {"head_dim", 256}}},
      {"gemma2",
       "Gemma2ForCausalLM",
       Mlp::gated,
       {{"vocab_size", 256000},
        {"hidden_size", 2304},
        {"intermediate_size", 9216},
        {"num_hidden_layers", 26},
        {"num_attention_heads", 8},
        {"num_key_value_heads", 4},
        {"head_dim", 256}}},
      {"gemma3_text",
       "Gemma3ForCausalLM",
       Mlp::gated,
       {{"vocab_size", 262208},
        {"hidden_size", 2304},
        {"intermediate_size", 9216},
        {"num_hidden_layers", 26},
        {"num_attention_heads", 8},
        {"num_key_value_heads", 4},
        {"head_dim", 256}}},
      {"phi3", "Phi3ForCausalLM"},
      {"cohere", "CohereForCausalLM"},
      {"cohere2", "Cohere2ForCausalLM"},
      {"granite", "GraniteForCausalLM"},
      {"olmo2", "Olmo2ForCausalLM"},
      {"seed_oss", "SeedOssForCausalLM", Mlp::gated, {{"num_key_value_heads", 8}, {"head_dim", 128}}},
      {"smollm3", "SmolLM3ForCausalLM", Mlp::gated, {{"num_key_value_heads", 4}}},
      {"stablelm", "StableLmForCausalLM", Mlp::gated, {{"num_key_value_heads", 32}}},

      {"nemotron", "NemotronForCausalLM", Mlp::plain},
      {"phi", "PhiForCausalLM", Mlp::plain},
      {"starcoder2", "Starcoder2ForCausalLM", Mlp::plain, {{"num_key_value_heads", 2}}},
      {.name = "gpt_neox", .architecture = "GPTNeoXForCausalLM", .mlp = Mlp::plain, .kv_heads = {}},
      {.name = "gpt2",
       .architecture = "GPT2LMHeadModel",
       .mlp = Mlp::plain,
       .hidden = {"n_embd", "hidden_size"},
       .layers = {"n_layer", "num_hidden_layers"},
       .heads = {"n_head", "num_attention_heads"},
       .kv_heads = {},
       .width = {"n_inner"},
       .width_may_be_absent = true},
      {.name = "gptj",
       .architecture = "GPTJForCausalLM",
       .mlp = Mlp::plain,
       .hidden = {"n_embd", "hidden_size"},
       .layers = {"n_layer", "num_hidden_layers"},
       .heads = {"n_head", "num_attention_heads"},
       .kv_heads = {},
       .width = {"n_inner"},
       .width_may_be_absent = true},
      {.name = "falcon",
       .architecture = "FalconForCausalLM",
       .mlp = Mlp::plain,
       .layers = {"num_hidden_layers", "n_layer"},
       .heads = {"num_attention_heads", "n_head"},
       .kv_heads = {"num_kv_heads", "n_head_kv"},
       .width = {"ffn_hidden_size"},
       .width_may_be_absent = true,
       .multi_query_flags = true},

      {.name = "mixtral",
       .architecture = "MixtralForCausalLM",
       .defaults = {{"num_key_value_heads", 8}},
       .experts = {.experts = {"num_local_experts"}, .width = "intermediate_size"}},
      {.name = "phimoe",
       .architecture = "PhimoeForCausalLM",
       .defaults = {{"num_key_value_heads", 8}},
       .experts = {.experts = {"num_local_experts"}, .width = "intermediate_size"}},
      {.name = "gpt_oss",
       .architecture = "GptOssForCausalLM",
       .defaults = {{"num_key_value_heads", 8}, {"head_dim", 64}},
       .experts = {.experts = {"num_local_experts"},
                   .top_k = {"num_experts_per_tok", "experts_per_token"},
                   .width = "intermediate_size"}},
      {.name = "qwen2_moe",
       .architecture = "Qwen2MoeForCausalLM",
       .defaults = {{"num_key_value_heads", 16}},
       .experts = {.experts = {"num_experts"},
                   .width = "moe_intermediate_size",
                   .sparse_step = "decoder_sparse_step",
                   .dense_layers = "mlp_only_layers",
                   .shared_width = "shared_expert_intermediate_size"}},
      {.name = "qwen3_moe",
       .architecture = "Qwen3MoeForCausalLM",
       .defaults = {{"num_key_value_heads", 4}},
       .experts = {.experts = {"num_experts", "num_local_experts"},
                   .width = "moe_intermediate_size",
                   .sparse_step = "decoder_sparse_step",
                   .dense_layers = "mlp_only_layers"}},
      {.name = "glm4_moe",
       .architecture = "Glm4MoeForCausalLM",
       .defaults = {{"num_key_value_heads", 8}},
       .experts = {.experts = {"n_routed_experts"},
                   .width = "moe_intermediate_size",
                   .first_dense = "first_k_dense_replace",
                   .shared_count = "n_shared_experts"},
       .predicts_tokens = true},
      {.name = "deepseek_v2",
       .architecture = "DeepseekV2ForCausalLM",
       .experts = deepseek_experts,
       .attention = Attention::latent},
      {.name = "deepseek_v3",
       .architecture = "DeepseekV3ForCausalLM",
       .experts = deepseek_experts,
       .attention = Attention::latent,
       .predicts_tokens = true},
      {.name = "kimi_k2",
       .architecture = "DeepseekV3ForCausalLM",
       .experts = deepseek_experts,
       .attention = Attention::latent,
       .predicts_tokens = true},
  };
  return types;
}

constexpr std::array<WrapperType, 4> kWrappers = {{
    {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
    {"llava", "LlavaForConditionalGeneration", "llama"},
    {"llava_next", "LlavaNextForConditionalGeneration", "llama"},
    {"mistral3", "Mistral3ForConditionalGeneration", "mistral"},
}};

// clang-format off
constexpr std::string_view kStructuralKeys[] = {
    // experts
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok",
    "moe_intermediate_size", "n_shared_experts", "shared_expert_intermediate_size", "moe_layers",
    // attention that is not grouped, or not the same in all layers
    "q_lora_rank", "kv_lora_rank", "v_head_dim", "index_n_heads", "index_topk", "global_head_dim",
    "num_kv_shared_layers", "attention_k_eq_v", "attn_output_gate",
    // layers that are not attention, or differ from each other
    "block_configs", "hybrid_override_pattern", "layers_block_type", "linear_attn_config",
    "linear_num_value_heads", "mamba_d_state", "ssm_cfg",
    // another model inside, or in front
    "text_config", "llm_config", "draft_vocab_size", "num_nextn_predict_layers",
};
// clang-format on

}  // namespace

const ModelType* find_model_type(std::string_view name) {
  auto found = std::ranges::find(table(), name, &ModelType::name);
  return found == table().end() ? nullptr : &*found;
}

const WrapperType* find_wrapper_type(std::string_view name) {
  auto found = std::ranges::find(kWrappers, name, &WrapperType::name);
  return found == kWrappers.end() ? nullptr : &*found;
}

std::vector<std::string> model_type_names() {
  std::vector<std::string> names;
  for (const ModelType& type : table()) names.emplace_back(type.name);
  for (const WrapperType& type : kWrappers) names.emplace_back(type.name);
  std::ranges::sort(names);
  return names;
}

std::string nearest_model_type(std::string_view name) {
  std::vector<std::string> known = model_type_names();
  std::string best = nearest(name, known);
  if (!best.empty()) return best;
  size_t longest = 2;  // two letters in common say nothing
  for (const std::string& candidate : known) {
    auto common = static_cast<size_t>(std::ranges::mismatch(name, candidate).in1 - name.begin());
    if (common <= longest) continue;
    longest = common;
    best = candidate;
  }
  return best;
}

std::span<const std::string_view> structural_keys() { return kStructuralKeys; }

}  // namespace gemmtune
