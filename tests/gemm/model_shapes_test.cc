// Every projection of the public configurations in tests/data/model_configs, and what is refused.
#include "gemm/model_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gemm/error.h"

namespace gemmtune {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kConfigs = fs::path(GEMMTUNE_SOURCE_DIR) / "tests/data/model_configs";

/// N and K on one GPU and on each of eight.
struct Row {
  std::string name;
  int64_t n1, k1, n8, k8, layers;
};
struct Model {
  std::string file;
  std::string model_type;
  std::vector<Row> rows;
};
/// ctest shows parameters; without this, as bytes.
void PrintTo(const Model& model, std::ostream* out) { *out << model.file; }

// clang-format off
const std::vector<Model> kModels = {
    {"llama-3.1-8b", "llama", {
        {"qkv fused", 6144, 4096, 768, 4096, 32},
        {"o", 4096, 4096, 4096, 512, 32},
        {"gate+up fused", 28672, 4096, 3584, 4096, 32},
        {"down", 4096, 14336, 4096, 1792, 32},
        {"lm_head", 128256, 4096, 16032, 4096, 1}}},
    {"llama-3.1-70b", "llama", {
        {"qkv fused", 10240, 8192, 1280, 8192, 80},
        {"o", 8192, 8192, 8192, 1024, 80},
        {"gate+up fused", 57344, 8192, 7168, 8192, 80},
        {"down", 8192, 28672, 8192, 3584, 80},
        {"lm_head", 128256, 8192, 16032, 8192, 1}}},
    {"llama-3.1-405b", "llama", {
        {"qkv fused", 18432, 16384, 2304, 16384, 126},
        {"o", 16384, 16384, 16384, 2048, 126},
        {"gate+up fused", 106496, 16384, 13312, 16384, 126},
        {"down", 16384, 53248, 16384, 6656, 126},
        {"lm_head", 128256, 16384, 16032, 16384, 1}}},
    {"mistral-7b-v0.3", "mistral", {
        {"qkv fused", 6144, 4096, 768, 4096, 32},
        {"o", 4096, 4096, 4096, 512, 32},
        {"gate+up fused", 28672, 4096, 3584, 4096, 32},
        {"down", 4096, 14336, 4096, 1792, 32},
        {"lm_head", 32768, 4096, 4096, 4096, 1}}},
    {"qwen2.5-3b", "qwen2", {
        {"qkv fused", 2560, 2048, 512, 2048, 36},
        {"o", 2048, 2048, 2048, 256, 36},
        {"gate+up fused", 22016, 2048, 2752, 2048, 36},
        {"down", 2048, 11008, 2048, 1376, 36},
        {"lm_head", 151936, 2048, 18992, 2048, 1}}},
    {"qwen3-32b", "qwen3", {
        {"qkv fused", 10240, 5120, 1280, 5120, 64},
        {"o", 5120, 8192, 5120, 1024, 64},
        {"gate+up fused", 51200, 5120, 6400, 5120, 64},
        {"down", 5120, 25600, 5120, 3200, 64},
        {"lm_head", 151936, 5120, 18992, 5120, 1}}},
    {"gemma-2-9b", "gemma2", {
        {"qkv fused", 8192, 3584, 1024, 3584, 42},
        {"o", 3584, 4096, 3584, 512, 42},
        {"gate+up fused", 28672, 3584, 3584, 3584, 42},
        {"down", 3584, 14336, 3584, 1792, 42},
        {"lm_head", 256000, 3584, 32000, 3584, 1}}},
    {"gemma-3-27b", "gemma3", {
        {"qkv fused", 8192, 5376, 1024, 5376, 62},
        {"o", 5376, 4096, 5376, 512, 62},
        {"gate+up fused", 43008, 5376, 5376, 5376, 62},
        {"down", 5376, 21504, 5376, 2688, 62},
        {"lm_head", 262208, 5376, 32776, 5376, 1}}},
    {"phi-4-mini", "phi3", {
        {"qkv fused", 5120, 3072, 640, 3072, 32},
        {"o", 3072, 3072, 3072, 384, 32},
        {"gate+up fused", 16384, 3072, 2048, 3072, 32},
        {"down", 3072, 8192, 3072, 1024, 32},
        {"lm_head", 200064, 3072, 25008, 3072, 1}}},
    {"falcon-40b", "falcon", {
        {"qkv fused", 9216, 8192, 1152, 8192, 60},
        {"o", 8192, 8192, 8192, 1024, 60},
        {"up (fc1, no gate)", 32768, 8192, 4096, 8192, 60},
        {"down (fc2)", 8192, 32768, 8192, 4096, 60},
        {"lm_head", 65024, 8192, 8128, 8192, 1}}},
    {"llava-1.5-7b", "llava", {
        {"qkv fused", 12288, 4096, 1536, 4096, 32},
        {"o", 4096, 4096, 4096, 512, 32},
        {"gate+up fused", 22016, 4096, 2752, 4096, 32},
        {"down", 4096, 11008, 4096, 1376, 32},
        {"lm_head", 32064, 4096, 4008, 4096, 1}}},
    {"mixtral-8x7b", "mixtral", {
        {"qkv fused", 6144, 4096, 768, 4096, 32},
        {"o", 4096, 4096, 4096, 512, 32},
        {"router", 8, 4096, 8, 4096, 32},
        {"expert gate+up", 28672, 4096, 3584, 4096, 32},
        {"expert down", 4096, 14336, 4096, 1792, 32},
        {"lm_head", 32000, 4096, 4000, 4096, 1}}},
    {"qwen3-30b-a3b", "qwen3_moe", {
        {"qkv fused", 5120, 2048, 768, 2048, 48},
        {"o", 2048, 4096, 2048, 512, 48},
        {"router", 128, 2048, 128, 2048, 48},
        {"expert gate+up", 1536, 2048, 192, 2048, 48},
        {"expert down", 2048, 768, 2048, 96, 48},
        {"lm_head", 151936, 2048, 18992, 2048, 1}}},
    {"gpt-oss-120b", "gpt_oss", {
        {"qkv fused", 5120, 2880, 640, 2880, 36},
        {"o", 2880, 4096, 2880, 512, 36},
        {"router", 128, 2880, 128, 2880, 36},
        {"expert gate+up", 5760, 2880, 720, 2880, 36},
        {"expert down", 2880, 2880, 2880, 360, 36},
        {"lm_head", 201088, 2880, 25136, 2880, 1}}},
    {"deepseek-v3", "deepseek_v3", {
        {"q_a + kv_a fused", 2112, 7168, 2112, 7168, 61},
        {"q_a alone", 1536, 7168, 1536, 7168, 61},
        {"kv_a alone", 576, 7168, 576, 7168, 61},
        {"q_b", 24576, 1536, 3072, 1536, 61},
        {"kv_b", 32768, 512, 4096, 512, 61},
        {"o", 7168, 16384, 7168, 2048, 61},
        {"dense gate+up", 36864, 7168, 4608, 7168, 3},
        {"dense down", 7168, 18432, 7168, 2304, 3},
        {"router", 256, 7168, 256, 7168, 58},
        {"shared gate+up", 4096, 7168, 512, 7168, 58},
        {"shared down", 7168, 2048, 7168, 256, 58},
        {"expert gate+up", 4096, 7168, 512, 7168, 58},
        {"expert down", 7168, 2048, 7168, 256, 58},
        {"lm_head", 129280, 7168, 16160, 7168, 1},
        {"MTP eh_proj", 7168, 14336, 7168, 14336, 1}}},
};
// clang-format on

std::string line(std::string_view name, int64_t n, int64_t k, int64_t count) {
  return std::string(name) + ": " + std::to_string(n) + " x " + std::to_string(k) + ", " +
         std::to_string(count);
}

std::vector<std::string> lines(const ModelShapes& shapes) {
  std::vector<std::string> result;
  for (const Projection& p : shapes.projections) result.push_back(line(p.name, p.n, p.k, p.count));
  return result;
}

const Projection& row(const ModelShapes& shapes, std::string_view name) {
  for (const Projection& p : shapes.projections)
    if (p.name == name) return p;
  throw std::runtime_error("no row " + std::string(name));
}

bool any_contains(const std::vector<std::string>& texts, std::string_view part) {
  return std::ranges::any_of(texts, [&](const std::string& t) { return t.find(part) != std::string::npos; });
}

json config(const std::string& name) { return json::parse(std::ifstream(kConfigs / (name + ".json"))); }

class ModelShapesOf : public testing::TestWithParam<Model> {};

TEST_P(ModelShapesOf, EveryProjectionOnOneAndOnEightGpus) {
  const Model& model = GetParam();
  std::vector<std::string> one, eight;
  for (const Row& r : model.rows) {
    one.push_back(line(r.name, r.n1, r.k1, r.layers));
    eight.push_back(line(r.name, r.n8, r.k8, r.layers));
  }
  ModelShapes shapes = model_shapes(kConfigs / (model.file + ".json"), 1);
  EXPECT_EQ(shapes.model_type, model.model_type);
  EXPECT_EQ(lines(shapes), one);
  EXPECT_EQ(lines(model_shapes(kConfigs / (model.file + ".json"), 8)), eight);
}

INSTANTIATE_TEST_SUITE_P(Public, ModelShapesOf, testing::ValuesIn(kModels), [](const auto& test) {
  std::string name = test.param.file;
  std::erase_if(name, [](unsigned char c) { return !std::isalnum(c); });
  return name;
});

/// Configurations edited in a folder of their own, gone after the test.
class ModelShapesFrom : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("model_shapes_" + std::string(info->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  ModelShapes shapes_of(const json& config, int tensor_parallel = 1) {
    std::ofstream(folder_ / "config.json") << config.dump();
    return model_shapes(folder_, tensor_parallel);
  }

  /// What is refused, without the path; "accepted" if nothing is.
  std::string refusal(const fs::path& path, int tensor_parallel = 1) {
    try {
      model_shapes(path, tensor_parallel);
    } catch (const UsageError& error) {
      std::string text = error.what(), prefix = path.string();
      if (text.starts_with(prefix)) text.erase(0, prefix.size());
      EXPECT_EQ(text.find('\n'), std::string::npos);
      return text;
    }
    return "accepted";
  }
  std::string refusal_of(const json& config, int tensor_parallel = 1) {
    return refusal_of_text(config.dump(), tensor_parallel);
  }
  std::string refusal_of_text(std::string_view text, int tensor_parallel = 1) {
    std::ofstream(folder_ / "config.json", std::ios::binary) << text;
    return refusal(folder_ / "config.json", tensor_parallel);
  }

  fs::path folder_;
};

TEST_F(ModelShapesFrom, FolderAndFileGiveTheSame) {
  for (const Model& model : kModels) {
    fs::path file = kConfigs / (model.file + ".json");
    fs::copy_file(file, folder_ / "config.json", fs::copy_options::overwrite_existing);
    for (int tensor_parallel : {1, 8}) {
      ModelShapes shapes = model_shapes(file, tensor_parallel);
      EXPECT_EQ(model_shapes(folder_, tensor_parallel), shapes) << model.file;
      EXPECT_EQ(model_shapes(folder_ / "config.json", tensor_parallel), shapes) << model.file;
    }
  }
}

TEST_F(ModelShapesFrom, QuantisationDoesNotChangeShapes) {
  fs::copy_file(kConfigs / "not-a-model--hf_quant_config.json", folder_ / "hf_quant_config.json");
  EXPECT_EQ(shapes_of(config("llama-3.1-70b")), model_shapes(kConfigs / "llama-3.1-70b.json", 1));
  json fp8 = config("qwen3-32b");
  fp8["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  ModelShapes shapes = shapes_of(fp8, 8), plain = model_shapes(kConfigs / "qwen3-32b.json", 8);
  EXPECT_EQ(shapes.projections, plain.projections);
  EXPECT_TRUE(any_contains(shapes.remarks, "quantization_config"));
  EXPECT_FALSE(any_contains(plain.remarks, "quantization_config"));
  json nested = config("gemma-3-27b");
  nested["quantization_config"] = {{"quant_method", "fp8"}};
  EXPECT_TRUE(any_contains(shapes_of(nested).remarks, "quantization_config"));
}

TEST(ModelShapes, SaysWhichKeysWereReadAndWhichDefaulted) {
  ModelShapes llama = model_shapes(kConfigs / "llama-3.1-70b.json", 1);
  EXPECT_EQ(llama.keys_read,
            (std::vector<std::string>{"model_type = \"llama\"", "architectures = [\"LlamaForCausalLM\"]",
                                      "hidden_size = 8192", "num_hidden_layers = 80",
                                      "num_attention_heads = 64", "num_key_value_heads = 8",
                                      "intermediate_size = 28672", "vocab_size = 128256"}));
  EXPECT_EQ(llama.keys_defaulted,
            std::vector<std::string>{"head_dim = 128 (hidden_size / num_attention_heads)"});

  ModelShapes gemma = model_shapes(kConfigs / "gemma-3-27b.json", 1);
  EXPECT_EQ(gemma.keys_defaulted,
            std::vector<std::string>{"text_config.vocab_size = 262208 (class default of gemma3_text)"});
  EXPECT_TRUE(any_contains(gemma.keys_read, "text_config.head_dim = 128"));
  EXPECT_TRUE(any_contains(gemma.remarks, "defaults of model class gemma3_text: vocab_size 262208"));
  EXPECT_TRUE(any_contains(gemma.remarks, "vision tower and its projector are not listed"));

  ModelShapes llava = model_shapes(kConfigs / "llava-1.5-7b.json", 1);
  EXPECT_TRUE(any_contains(llava.keys_read, "text_config.vocab_size = 32064"));
  EXPECT_TRUE(any_contains(
      llava.remarks,
      "defaults of model class llama: hidden_size 4096, num_hidden_layers 32, num_attention_heads "
      "32, intermediate_size 11008"));

  ModelShapes falcon = model_shapes(kConfigs / "falcon-40b.json", 1);
  EXPECT_TRUE(any_contains(falcon.keys_defaulted, "ffn_hidden_size = 32768 (4 * hidden_size)"));
  // Read only where a layer uses it: no layer of this model is dense.
  EXPECT_FALSE(
      any_contains(model_shapes(kConfigs / "qwen3-30b-a3b.json", 1).keys_read, " intermediate_size"));
}

TEST(ModelShapes, NotesSayWhatTheSizesDoNot) {
  ModelShapes deepseek = model_shapes(kConfigs / "deepseek-v3.json", 8);
  EXPECT_EQ(row(deepseek, "expert gate+up").note, "x256 experts, top-8");
  EXPECT_EQ(row(deepseek, "router").note, "replicated");
  EXPECT_EQ(row(deepseek, "MTP eh_proj").note, "replicated");
  EXPECT_EQ(row(deepseek, "q_b").note, "");
  EXPECT_TRUE(
      any_contains(deepseek.remarks,
                   "expert parallelism 8 runs 32 whole experts a rank instead: 4096 x 7168 and 7168 x 2048"));
  EXPECT_TRUE(any_contains(deepseek.remarks, "over 16 heads (N 512 K 128 and N 128 K 512)"));
  EXPECT_TRUE(any_contains(deepseek.remarks, "num_nextn_predict_layers 1"));
  EXPECT_FALSE(any_contains(model_shapes(kConfigs / "deepseek-v3.json", 1).remarks, "expert parallelism"));
  EXPECT_EQ(row(model_shapes(kConfigs / "qwen2.5-3b.json", 8), "qkv fused").note,
            "each of 2 kv heads replicated on 4 ranks");
  EXPECT_EQ(row(model_shapes(kConfigs / "qwen2.5-3b.json", 2), "qkv fused").note, "");
}

TEST_F(ModelShapesFrom, HeadSizeIsTheKeyElseDerived) {
  json llama = config("llama-3.1-8b");
  llama["head_dim"] = 64;
  EXPECT_EQ(row(shapes_of(llama), "qkv fused").n, (32 + 16) * 64);
  EXPECT_EQ(row(shapes_of(llama), "o").k, 32 * 64);
  llama["head_dim"] = nullptr;
  EXPECT_EQ(row(shapes_of(llama), "qkv fused").n, 6144);
  llama["hidden_size"] = 4100;
  EXPECT_EQ(refusal_of(llama),
            ": hidden_size 4100 is not divisible by num_attention_heads 32, and there is no head_dim");
  // The class has a head size of its own (128), which hidden / heads (80) would contradict.
  json qwen = config("qwen3-32b");
  qwen.erase("head_dim");
  EXPECT_EQ(refusal_of(qwen), ": head_dim is missing: the shapes cannot be derived without it");
}

TEST_F(ModelShapesFrom, KeyValueHeads) {
  json llama = config("llama-3.1-8b");
  llama.erase("num_key_value_heads");
  ModelShapes shapes = shapes_of(llama);
  EXPECT_EQ(row(shapes, "qkv fused").n, 3 * 4096);
  EXPECT_EQ(shapes.keys_defaulted[0], "num_key_value_heads = 32 (num_attention_heads)");
  llama["num_key_value_heads"] = 5;
  EXPECT_EQ(refusal_of(llama), ": 32 query heads are not divisible by num_key_value_heads 5");

  json mistral = config("mistral-7b-v0.3");  // the class would take 8
  mistral.erase("num_key_value_heads");
  EXPECT_EQ(refusal_of(mistral), ": num_key_value_heads is missing: the shapes cannot be derived without it");
  mistral["num_key_value_heads"] = nullptr;
  EXPECT_EQ(row(shapes_of(mistral), "qkv fused").n, 3 * 4096);

  json falcon = config("falcon-40b");
  falcon["new_decoder_architecture"] = false;
  EXPECT_EQ(row(shapes_of(falcon), "qkv fused").n, 130 * 64);
  falcon["multi_query"] = false;
  EXPECT_EQ(row(shapes_of(falcon), "qkv fused").n, 3 * 8192);
  falcon["ffn_hidden_size"] = 16384;
  EXPECT_EQ(row(shapes_of(falcon), "down (fc2)").k, 16384);
}

TEST_F(ModelShapesFrom, TensorParallelismMustDivide) {
  EXPECT_EQ(refusal(kConfigs / "phi-4-mini.json", 16),
            ": num_attention_heads 24 is not divisible by tensor parallelism 16: choose one of 1, 2, 3, 4, "
            "6, 8, 12, "
            "24");
  EXPECT_EQ(
      refusal(kConfigs / "phi-4-mini.json", 3),
      ": the number of key-value heads 8 is not divisible by tensor parallelism 3: choose one of 1, 2, 4, 8");
  EXPECT_EQ(refusal(kConfigs / "phi-4-mini.json", 12),
            ": 8 key-value heads cannot be replicated over tensor parallelism 12: choose a multiple or a "
            "divisor of 8");
  EXPECT_EQ(refusal(kConfigs / "deepseek-v3.json", 3),
            ": num_attention_heads 128 is not divisible by tensor parallelism 3: choose one of 1, 2, 4, 8, "
            "16, 32, 64, "
            "128");
  EXPECT_EQ(refusal(kConfigs / "phi-4-mini.json", 0), "tensor parallelism 0: must be at least 1");
  json llama = config("llama-3.1-8b");
  llama["intermediate_size"] = 14338;
  EXPECT_EQ(
      refusal_of(llama, 8),
      ": intermediate_size 14338 is not divisible by tensor parallelism 8: choose one of 1, 2, 67, 107, 134, "
      "214");
}

TEST_F(ModelShapesFrom, VocabularyIsPaddedBeforeItIsShared) {
  // gpt-j-6b: 50400 is not a multiple of 64; keys as in the first GPT configurations, no kv heads, width
  // null.
  json gptj = {{"model_type", "gptj"}, {"architectures", {"GPTJForCausalLM"}},
               {"n_embd", 4096},       {"n_head", 16},
               {"n_layer", 28},        {"n_inner", nullptr},
               {"vocab_size", 50400},  {"rotary_dim", 64}};
  EXPECT_EQ(lines(shapes_of(gptj)),
            (std::vector<std::string>{"qkv fused: 12288 x 4096, 28", "o: 4096 x 4096, 28",
                                      "up (fc1, no gate): 16384 x 4096, 28", "down (fc2): 4096 x 16384, 28",
                                      "lm_head: 50432 x 4096, 1"}));
  EXPECT_EQ(row(shapes_of(gptj, 8), "lm_head").n, 6304);
  EXPECT_EQ(row(shapes_of(gptj), "lm_head").note, "vocabulary 50400 padded to 50432");
}

TEST_F(ModelShapesFrom, DenseAndSharedLayersAmongExperts) {
  json qwen = config("qwen3-30b-a3b");
  qwen["mlp_only_layers"] = {0, 1, 2};
  EXPECT_EQ(row(shapes_of(qwen), "expert down").count, 45);
  EXPECT_EQ(row(shapes_of(qwen), "dense gate+up").n, 2 * 6144);
  EXPECT_EQ(row(shapes_of(qwen), "dense gate+up").count, 3);
  qwen["decoder_sparse_step"] = 2;  // layers 1, 3, 5...; 1 is dense
  EXPECT_EQ(row(shapes_of(qwen), "router").count, 23);

  json deepseek = config("deepseek-v3");
  deepseek["n_shared_experts"] = 2;
  deepseek["moe_layer_freq"] = 2;  // layers 4, 6, ... 60
  deepseek["num_nextn_predict_layers"] = 0;
  ModelShapes shapes = shapes_of(deepseek);
  EXPECT_EQ(row(shapes, "shared gate+up").n, 2 * 2 * 2048);
  EXPECT_EQ(row(shapes, "router").count, 29);
  EXPECT_EQ(row(shapes, "dense down").count, 32);
  EXPECT_EQ(shapes.projections.back().name, "lm_head");
  deepseek["q_lora_rank"] = nullptr;  // as in the small V2
  deepseek["n_shared_experts"] = nullptr;
  shapes = shapes_of(deepseek, 8);
  EXPECT_EQ(line("q", row(shapes, "q").n, row(shapes, "q").k, 61), "q: 3072 x 7168, 61");
  EXPECT_EQ(row(shapes, "kv_a alone").note, "replicated");
  EXPECT_THROW(row(shapes, "shared down"), std::runtime_error);
  EXPECT_THROW(row(shapes, "q_a + kv_a fused"), std::runtime_error);

  // Qwen1.5-MoE-A2.7B: one shared expert with a width and a gate of its own.
  json qwen2 = {{"model_type", "qwen2_moe"},
                {"hidden_size", 2048},
                {"num_hidden_layers", 24},
                {"num_attention_heads", 16},
                {"num_key_value_heads", 16},
                {"vocab_size", 151936},
                {"num_experts", 60},
                {"num_experts_per_tok", 4},
                {"moe_intermediate_size", 1408},
                {"shared_expert_intermediate_size", 5632},
                {"decoder_sparse_step", 1},
                {"intermediate_size", 5632}};
  EXPECT_EQ(
      lines(shapes_of(qwen2)),
      (std::vector<std::string>{"qkv fused: 6144 x 2048, 24", "o: 2048 x 2048, 24", "router: 60 x 2048, 24",
                                "shared gate+up: 11264 x 2048, 24", "shared down: 2048 x 5632, 24",
                                "shared gate: 1 x 2048, 24", "expert gate+up: 2816 x 2048, 24",
                                "expert down: 2048 x 1408, 24", "lm_head: 151936 x 2048, 1"}));
}

TEST_F(ModelShapesFrom, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(
      refusal(kConfigs / "not-a-model--hf_quant_config.json"),
      ": has no model_type: this is a quantisation description (hf_quant_config.json); give the model's "
      "config.json");
  EXPECT_EQ(refusal_of(json::object()),
            ": has no model_type: not a model configuration; give the model's config.json");
  json llama = config("llama-3.1-8b");
  auto with = [&](std::string_view key, const json& value) {
    json edited = llama;
    edited[std::string(key)] = value;
    return refusal_of(edited);
  };
  EXPECT_TRUE(
      with("model_type", "lama")
          .starts_with(": model_type 'lama' is not understood (nearest known: 'llama'): known are cohere, "));
  EXPECT_TRUE(
      with("model_type", "qwen3_next")
          .starts_with(
              ": model_type 'qwen3_next' is not understood (nearest known: 'qwen3_moe'): known are "));
  EXPECT_TRUE(with("model_type", "bert\n").starts_with(": model_type 'bert?' is not understood: known are "));
  EXPECT_EQ(with("model_type", 7), ": model_type is 7: expected text");
  EXPECT_EQ(with("num_local_experts", 8),
            ": num_local_experts is not understood for model_type 'llama': its shapes would be wrong");
  EXPECT_EQ(with("num_local_experts", 0), "accepted");
  EXPECT_EQ(with("q_lora_rank", nullptr), "accepted");
  EXPECT_EQ(with("text_config", {{"hidden_size", 1}}),
            ": text_config is not understood for model_type 'llama': its shapes would be wrong");
  EXPECT_EQ(with("layer_types", {"full_attention", "linear_attention"}),
            ": layer_types has 'linear_attention': only attention layers are understood (full_attention, "
            "sliding_attention, chunked_attention)");
  EXPECT_EQ(with("architectures", {"LlamaForCausalLMEagle3"}),
            ": architecture 'LlamaForCausalLMEagle3' is not understood for model_type 'llama': expected "
            "LlamaForCausalLM");
  json vision = config("llava-1.5-7b");
  vision.erase("text_config");
  EXPECT_EQ(refusal_of(vision), ": has no object text_config");
  vision["text_config"] = {{"model_type", "mamba"}};
  EXPECT_TRUE(refusal_of(vision).starts_with(": model_type 'mamba' is not understood"));
}

TEST_F(ModelShapesFrom, RefusesMissingAndWrongValues) {
  for (std::string key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
    json llama = config("llama-3.1-8b");
    llama.erase(key);
    EXPECT_EQ(refusal_of(llama), ": " + key + " is missing: the shapes cannot be derived without it");
    llama[key] = nullptr;
    EXPECT_EQ(refusal_of(llama), ": " + key + " is missing: the shapes cannot be derived without it");
    for (json bad : {json(0), json(-1), json(4096.0), json("4096"), json(true), json({4096}),
                     json(2147483648), json(UINT64_MAX)}) {
      llama[key] = bad;
      EXPECT_EQ(refusal_of(llama),
                ": " + key + " is " + bad.dump() + ": expected a whole number from 1 to 2147483647");
    }
  }
  json falcon = config("falcon-40b");
  falcon["n_head"] = 64;
  EXPECT_EQ(refusal_of(falcon), ": num_attention_heads 128 and n_head 64 disagree: correct one");
  falcon = config("falcon-40b");
  falcon["multi_query"] = 1;
  falcon["new_decoder_architecture"] = false;
  EXPECT_EQ(refusal_of(falcon), ": multi_query is 1: expected true or false");
  json mixtral = config("mixtral-8x7b");
  mixtral["num_experts_per_tok"] = 9;
  EXPECT_EQ(refusal_of(mixtral), ": num_experts_per_tok 9 is more than num_local_experts 8");
  for (std::string key :
       {"n_shared_experts", "first_k_dense_replace", "q_lora_rank", "kv_lora_rank", "v_head_dim"}) {
    json deepseek = config("deepseek-v3");
    deepseek.erase(key);
    EXPECT_EQ(refusal_of(deepseek), ": " + key + " is missing: the shapes cannot be derived without it");
  }
  json huge = config("llama-3.1-8b");
  huge["head_dim"] = 2147483647;
  EXPECT_EQ(refusal_of(huge), ": attention 32 x 2147483647 is larger than 2147483647");
  huge = config("llama-3.1-8b");
  huge["intermediate_size"] = 2147483647;
  EXPECT_EQ(refusal_of(huge), ": gate+up fused would be 4294967294 x 4096: sizes above 2147483647 cannot be");
  huge = config("llama-3.1-8b");
  huge["num_hidden_layers"] = 2147483647;
  EXPECT_EQ(refusal_of(huge), ": 2147483647 layers: more than 10000");
}

TEST_F(ModelShapesFrom, RefusesWhatIsNoConfiguration) {
  EXPECT_EQ(refusal(folder_), ": the folder has no config.json: name the model's folder or its config.json");
  EXPECT_EQ(refusal(folder_ / "none.json"), ": cannot read the config.json: No such file or directory");
  EXPECT_EQ(refusal_of_text(""), ":1: not JSON: give the model's config.json");
  EXPECT_EQ(refusal_of_text("{\n\"model_type\": \"llama\",\n}"),
            ":3: not JSON: give the model's config.json");
  EXPECT_EQ(refusal_of_text("[1, 2]"), ": not a model configuration: expected a JSON object with model_type");
  EXPECT_EQ(refusal_of_text(std::string_view("\0\1", 2)),
            ": is not a text file (it has a byte 0x00): expected a config.json");
  EXPECT_EQ(
      refusal_of_text("{\"weight_map\": {\"a\": \"b\"}}"),
      ": has no model_type: this is an index of weights (model.safetensors.index.json); give the model's "
      "config.json");
  std::string deep(200000, '[');
  EXPECT_EQ(refusal_of_text(deep), ":1: not JSON: give the model's config.json");
}

TEST_F(ModelShapesFrom, ClassifiersHaveNoLanguageHead) {
  json llama = config("llama-3.1-8b");
  llama["architectures"] = {"LlamaForSequenceClassification"};
  ModelShapes shapes = shapes_of(llama);
  EXPECT_EQ(shapes.projections.back().name, "down");
  EXPECT_TRUE(any_contains(shapes.remarks, "LlamaForSequenceClassification has no lm_head"));
  llama.erase("architectures");
  EXPECT_EQ(shapes_of(llama).projections.back().name, "lm_head");
}

TEST(ShapesForTokens, OneForEachTokenCountAndProjection) {
  ModelShapes model = model_shapes(kConfigs / "llama-3.1-70b.json", 1);
  std::vector<int64_t> tokens{1, 256, 1};
  std::vector<ListedShape> shapes = shapes_for_tokens(model, tokens);
  ASSERT_EQ(shapes.size(), 10u);
  EXPECT_EQ(shapes[0], (ListedShape{{1, 10240, 8192}, "qkv fused, 1 token", 80}));
  EXPECT_EQ(shapes[5], (ListedShape{{256, 10240, 8192}, "qkv fused, 256 tokens", 80}));
  EXPECT_EQ(shapes[9], (ListedShape{{256, 128256, 8192}, "lm_head, 256 tokens", 1}));
  EXPECT_EQ(parse_shape_list(to_csv(shapes), "list.csv"), shapes);
}

TEST(ShapesForTokens, AnExpertSeesItsShareOfTheTokens) {
  ModelShapes model = model_shapes(kConfigs / "qwen3-30b-a3b.json", 1);
  auto expert = [&](int64_t count) {
    std::vector<ListedShape> shapes = shapes_for_tokens(model, std::vector<int64_t>{count});
    return *std::ranges::find_if(shapes,
                                 [](const ListedShape& s) { return s.name.starts_with("expert gate+up"); });
  };
  EXPECT_EQ(expert(256),
            (ListedShape{{16, 1536, 2048}, "expert gate+up, 256 tokens -> 16 rows an expert", 48}));
  EXPECT_EQ(expert(257).shape.m, 17);
  EXPECT_EQ(expert(1), (ListedShape{{1, 1536, 2048}, "expert gate+up, 1 token -> 1 row an expert", 48}));
  EXPECT_EQ(expert(2147483647).shape.m, 134217728);
  for (const Projection& p : model.projections)
    EXPECT_EQ(rows_of(p, 256), p.name.starts_with("expert") ? 16 : 256) << p.name;
}

TEST(ShapesForTokens, RefusesWhatIsNoTokenCount) {
  ModelShapes model = model_shapes(kConfigs / "llama-3.1-8b.json", 1);
  for (int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{1} << 31})
    EXPECT_THROW(shapes_for_tokens(model, std::vector<int64_t>{bad}), UsageError);
  EXPECT_TRUE(shapes_for_tokens(model, {}).empty());
}

}  // namespace
}  // namespace gemmtune
