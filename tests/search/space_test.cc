#include "search/space.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "gemm/error.h"
#include "kernel_templates/render.h"
#include "search/proxy_shapes.h"
#include "search/static_check.h"
#include "search/strategy.h"

namespace gemmtune {
namespace {

const ArchSpec& arch(std::string_view name) { return find_arch(name); }

/// Two values of each knob that rules read, one of most others: small enough to try every combination.
Restrictions few(const KernelFamily& family) {
  Restrictions r;
  for (std::string_view text : {"stages=2,6", "tile_k=64", "swizzle=128B", "tile_n=64,256", "cluster_m=1,2",
                                "cluster_n=1,8", "prefetch=0,4", "raster=m,hilbert", "raster_group=1,8",
                                "l2_a=normal,evict_last", "l2_b=normal", "pdl=no"})
    add_restriction(family, text, r);
  if (family.name() == "sm100_gemm")
    for (std::string_view text : {"preferred_m=1,2", "split_k=1,4", "epilogue=direct", "epilogue_warps=4"})
      add_restriction(family, text, r);
  return r;
}

/// Calls `visit` for each combination of values.
void for_each_combination(const std::vector<std::vector<int>>& values,
                          const std::function<void(const Config&)>& visit) {
  Config config;
  std::vector<size_t> at(values.size(), 0);
  for (const std::vector<int>& choice : values) config.values.push_back(choice[0]);
  for (size_t i = 0; i < values.size();) {
    if (i == 0) visit(config);
    if (++at[i] == values[i].size()) at[i] = 0;
    config.values[i] = values[i][at[i]];
    i = at[i] == 0 ? i + 1 : 0;
  }
}

// The pruned walk counts what testing every combination counts.
TEST(Space, CountEqualsBruteForce) {
  for (std::string_view name : {"sm_100a", "sm_90a"}) {
    const KernelFamily& family = family_for(arch(name));
    Space space(family, arch(name), {}, Shape{4096, 4096, 4096}, few(family));
    int64_t all = 0, legal = 0;
    std::set<Config> kernels;
    for_each_combination(space.values(), [&](const Config& config) {
      ++all;
      if (!space.legal(config)) return;
      ++legal;
      kernels.insert(compiled_part(family, config));
    });
    EXPECT_GT(legal, 0);
    EXPECT_LT(legal, all);
    EXPECT_EQ(space.count(), legal);
    EXPECT_EQ(space.count_kernels(), static_cast<int64_t>(kernels.size()));
    int64_t visited = 0;
    space.for_each([&](const Config& config) {
      EXPECT_TRUE(space.legal(config));
      ++visited;
      return true;
    });
    EXPECT_EQ(visited, legal);
  }
}

TEST(Space, UnalignedShapeHasNoLegalConfig) {
  Space space(family_for(arch("sm_100a")), arch("sm_100a"), {}, Shape{128, 128, 100});
  EXPECT_EQ(space.count(), 0);
  std::mt19937_64 random(1);
  EXPECT_FALSE(space.sample(random, 100).has_value());
  ASSERT_FALSE(space.rejections(10, 1).empty());
  EXPECT_EQ(space.rejections(10, 1)[0].constraint, "alignment");
}

TEST(Space, RestrictionsNameWhatIsWrong) {
  const KernelFamily& family = family_for(arch("sm_100a"));
  Restrictions r;
  auto message = [&](std::string_view text) {
    try {
      add_restriction(family, text, r);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message("stagse=4").substr(0, 46), "unknown knob 'stagse' (did you mean 'stages'?)");
  EXPECT_EQ(message("swizzle=129B"),
            "knob swizzle_a has no value '129B' (did you mean '128B'?): one of none, 32B, 64B, 128B");
  EXPECT_EQ(message("stages"), "'stages': expected KNOB=VALUE[,VALUE...], for example stages=4,6");
  EXPECT_EQ(message("stages=4,,6"),
            "knob stages has no value '': one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12");
}

TEST(Strategy, ProposesDistinctLegalConfigsDeterministically) {
  const KernelFamily& family = family_for(arch("sm_90a"));
  Problem problem{{}, {256, 8192, 8192}};
  Space space(family, arch("sm_90a"), problem.cls, problem.shape);
  const DeviceSpec& device = *find_device_spec("H200");
  for (const Strategy& strategy : strategies()) {
    std::vector<Config> first = strategy.propose({space, problem, device, 32, 7});
    EXPECT_EQ(first.size(), 32u) << strategy.name;
    EXPECT_EQ(std::set<Config>(first.begin(), first.end()).size(), first.size()) << strategy.name;
    for (const Config& config : first) EXPECT_TRUE(space.legal(config)) << to_text(family.knobs(), config);
    EXPECT_EQ(strategy.propose({space, problem, device, 32, 7}), first) << strategy.name;
  }
}

// Fewer legal configurations than trials: all of them, once.
TEST(Strategy, StopsWhenTheSpaceIsExhausted) {
  const KernelFamily& family = family_for(arch("sm_90a"));
  Restrictions r;
  for (const Knob& knob : family.knobs()) r[knob.name] = {knob.default_value};
  r["raster"] = {0, 1};
  Problem problem{{}, {256, 8192, 8192}};
  Space space(family, arch("sm_90a"), problem.cls, problem.shape, r);
  for (const Strategy& strategy : strategies())
    EXPECT_EQ(strategy.propose({space, problem, *find_device_spec("H200"), 32, 1}).size(), 2u)
        << strategy.name;
}

TEST(ProxyShapes, ObeyAlignmentAndMeetEverySpecialCase) {
  for (std::string_view cls_text : {"bf16-bf16-kk", "bf16-bf16-mk", "bf16-bf16-kn", "bf16-bf16-mn"}) {
    ProblemClass cls = parse_problem_class(cls_text);
    const KernelFamily& family = family_for(arch("sm_90a"));
    Config config = family.default_config();
    TileShape tile = family.tile(config, cls);
    bool ragged_m = false, ragged_n = false, ragged_k = false, one_k_tile = false, two_laps = false,
         many = false;
    for (const Shape& s : proxy_shapes(tile, cls, 132)) {
      EXPECT_TRUE(Space(family, arch("sm_90a"), cls, s).legal(config)) << to_string(s);
      ragged_m |= s.m % tile.tile_m != 0;
      ragged_n |= s.n % tile.tile_n != 0;
      ragged_k |= s.k % tile.tile_k != 0;
      one_k_tile |= s.k <= tile.tile_k;
      two_laps |= s.k > 2 * tile.stages * tile.tile_k;
      many |= ((s.m + tile.tile_m - 1) / tile.tile_m) * ((s.n + tile.tile_n - 1) / tile.tile_n) > 132;
    }
    EXPECT_TRUE(ragged_m && ragged_n && ragged_k && one_k_tile && two_laps && many) << cls_text;
  }
}

TEST(StaticCheck, RejectsWithTheReason) {
  const ArchSpec& a = arch("sm_100a");
  StaticEvidence good;
  good.registers = 64;
  good.dynamic_smem_bytes = 200000;
  good.tmem_columns = 512;
  EXPECT_EQ(static_violation(good, 192, a), "");
  auto with = [&](auto change) {
    StaticEvidence e = good;
    change(e);
    return static_violation(e, 192, a);
  };
  EXPECT_EQ(with([](auto& e) { e.spill_store_bytes = 8; }), "spills: 8 bytes stored, 0 bytes loaded");
  EXPECT_EQ(with([](auto& e) { e.stack_bytes = 16; }), "stack frame of 16 bytes");
  EXPECT_EQ(with([](auto& e) { e.static_smem_bytes = 40000; }), "240000 bytes of shared memory > 232448");
  EXPECT_EQ(with([](auto& e) { e.tmem_columns = 1024; }), "1024 columns of tensor memory > 512");
  EXPECT_EQ(with([](auto& e) { e.tmem_columns = 48; }),
            "48 columns of tensor memory: allocations are powers of two from 32");
  EXPECT_EQ(static_violation(good, 1024 + 32, a), "64 registers x 1056 threads > 65536");
}

}  // namespace
}  // namespace gemmtune
