// The project's own kernels on the emulator: legal variants drawn at random, proxy shapes, all fills, two
// schedules. And the judge is judged: a variant that is broken in one place does not pass.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "emulator/emulator_executor.h"
#include "gpu/nvrtc.h"
#include "kernel_templates/render.h"
#include "search/space.h"

namespace gemmtune {
namespace {

const Nvrtc& nvrtc() {
  static const Nvrtc compiler;
  return compiler;
}

ValidationResult prove(const Variant& v, const std::string& source) {
  CompileResult compiled = nvrtc().compile({"", source, std::string(v.arch->name)});
  EXPECT_TRUE(compiled.ok) << compiled.log;
  CompiledKernel kernel;
  kernel.ptx = compiled.ptx;
  EmulatorExecutor executor(*v.arch);
  executor.begin_problem({v.cls, {128, 128, 128}}, 1, v.cls.beta ? 0.5f : 0.0f);
  executor.prepare(0, v, kernel);
  return executor.validate(0);
}

void sample(std::string_view arch_name, int count) {
  const ArchSpec& arch = find_arch(arch_name);
  const KernelFamily& family = family_for(arch);
  std::mt19937_64 random(20261130);
  for (int i = 0; i < count; ++i) {
    ProblemClass cls{i % 2 ? DType::f16 : DType::bf16, static_cast<DType>(i % 3),
                     i % 5 == 1 ? Major::mn : Major::k, i % 7 == 2 ? Major::mn : Major::k, i % 4 == 3};
    // Tiles of moderate size: the proxies grow with tile and cluster, and this runs in CI.
    Restrictions moderate;
    add_restriction(family, "tile_n=16,32,64,96,128", moderate);
    add_restriction(family, "stages=1,2,3,4", moderate);
    add_restriction(family, "cluster_m=1,2,4", moderate);
    add_restriction(family, "cluster_n=1,2", moderate);
    std::optional<Config> config = Space(family, arch, cls, std::nullopt, moderate).sample(random);
    ASSERT_TRUE(config.has_value());
    Variant v{&family, &arch, cls, *config};
    ValidationResult result = prove(v, render(v));
    std::string what =
        fmt::format("{} {} {}", arch.name, to_string(cls), brief_text(family.knobs(), *config));
    fmt::print("{}: {}, {} cases\n", what, name(result.outcome), result.validation.cases.size());
    EXPECT_EQ(result.outcome, Outcome::ok) << what << ": " << result.message;
    EXPECT_TRUE(result.validation.passed()) << what;
  }
}

TEST(Families, Sm100VariantsPass) { sample("sm_100a", 16); }
TEST(Families, Sm103VariantsPass) { sample("sm_103a", 2); }
TEST(Families, Sm90VariantsPass) { sample("sm_90a", 6); }

struct Broken {
  const char* what;
  const char* config;
  const char* from;
  const char* to;
  std::vector<Outcome> allowed;
};

TEST(Families, BrokenVariantsDoNot) {
  const ArchSpec& arch = find_arch("sm_100a");
  const KernelFamily& family = family_for(arch);
  const Broken table[] = {
      {"last rows never written",
       "",
       "if (row >= rows) return;",
       "if (row >= rows - 1) return;",
       {Outcome::wrong_result}},
      {"accumulator left on for the first MMA",
       "",
       "accumulate || step > 0);",
       "true);",
       {Outcome::wrong_result, Outcome::crashed}},
      {"half the bytes expected",
       "",
       "kPairTransaction = kGroup * (",
       "kPairTransaction = kGroup / 2 * (",
       {Outcome::wrong_result, Outcome::crashed, Outcome::timed_out}},
      {"commit without the peer",
       "cta_group=2,cluster_m=2,stages=2",
       "u16 mask_pair = ((1 << kGroup) - 1) << (work.rank & ~(kGroup - 1u));",
       "u16 mask_pair = 1 << work.rank;",
       {Outcome::timed_out}},
      // Right on the first launch: the workspace that it leaves is what the second one stumbles over.
      {"workspace counters not back to zero",
       "split_k=2",
       "if (before == done.parts - 1) *counter = 0;",
       "",
       {Outcome::unstable}},
      {"writes one row too many",
       "",
       "if (row >= rows) return;",
       "if (row >= rows + 1) return;",
       {Outcome::crashed}},
  };
  for (const Broken& broken : table) {
    Variant v{&family, &arch, {}, parse_config(family.knobs(), broken.config)};
    std::string source = render(v);
    size_t at = source.find(broken.from);
    ASSERT_NE(at, std::string::npos) << broken.what;
    source.replace(at, std::string_view(broken.from).size(), broken.to);
    ValidationResult result = prove(v, source);
    fmt::print("{}: {}: {}\n", broken.what, name(result.outcome), result.message.substr(0, 200));
    EXPECT_NE(std::find(broken.allowed.begin(), broken.allowed.end(), result.outcome), broken.allowed.end())
        << broken.what << ": " << name(result.outcome) << ": " << result.message;
  }
}

}  // namespace
}  // namespace gemmtune
