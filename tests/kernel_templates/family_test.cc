// What the families claim: rules with numbers, launch plans, tensor maps.
#include "kernel_templates/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "search/space.h"

namespace gemmtune {
namespace {

std::vector<std::string> why(std::string_view arch, std::string_view config,
                             std::string_view cls = "bf16-bf16-kk",
                             std::optional<Shape> shape = std::nullopt) {
  const ArchSpec& spec = find_arch(arch);
  const KernelFamily& family = family_for(spec);
  return Space(family, spec, parse_problem_class(cls), shape)
      .violations(parse_config(family.knobs(), config));
}

LaunchPlan plan(std::string_view arch, std::string_view config, Shape shape, LaunchDevice device,
                std::string_view cls = "bf16-bf16-kk") {
  const ArchSpec& spec = find_arch(arch);
  const KernelFamily& family = family_for(spec);
  return family.plan(parse_config(family.knobs(), config), parse_problem_class(cls), spec, shape, device, 1,
                     0);
}

using Reasons = std::vector<std::string>;

// The pitfalls of seed 000_b7f4eb2624be9cfc.txt that a rule can catch before anything is compiled.
TEST(Sm100Rules, RefuseWithNumbers) {
  EXPECT_EQ(why("sm_100a", "stages=6,tile_n=256"),
            Reasons{"6 stages x 48 KiB = 288 KiB > 227 KiB of shared memory"});
  EXPECT_EQ(why("sm_100a", "tile_k=16,swizzle_a=128B,swizzle_b=none"),
            Reasons{"A is K-major: its tile is 16 elements = 32 bytes long, not a multiple of the 128-byte "
                    "swizzle span"});
  EXPECT_EQ(why("sm_100a", "cta_group=2"),
            Reasons{"cta_group 2 pairs neighbours along M: cluster_m = 1 is odd"});
  EXPECT_EQ(why("sm_100a", "acc_slots=2"),
            Reasons{"acc_slots = 2 without persistent: a CTA has one tile, the second accumulator is idle"});
  EXPECT_EQ(why("sm_100a", "cluster_m=8,cluster_n=2,tile_n=128"),
            Reasons{"cluster 8 x 2 = 16 CTAs > 8, the portable maximum"});
  EXPECT_EQ(why("sm_100a", "tile_n=48,cta_group=2,cluster_m=2"),
            Reasons{"tile_n = 48: an MMA over a pair takes N in steps of 32"});
  EXPECT_EQ(
      why("sm_100a", "", "bf16-bf16-kk", Shape{128, 128, 100}),
      Reasons{"K = 100: rows of A are 200 bytes apart, TMA needs a multiple of 16 (make K a multiple of 8)"});
  EXPECT_EQ(
      why("sm_100a", "", "bf16-bf16-mn", Shape{100, 128, 100}),
      Reasons{"M = 100: rows of A are 200 bytes apart, TMA needs a multiple of 16 (make M a multiple of 8)"});
  EXPECT_TRUE(why("sm_100a", "", "bf16-bf16-mn", Shape{104, 128, 99}).empty());
}

TEST(Sm100Rules, RefuseWhatTheLeversCannotDo) {
  EXPECT_EQ(why("sm_100a", "epilogue_warps=8,tile_n=48"),
            Reasons{"8 epilogue warps: 48 columns of tensor memory give each 24, not a multiple of 16"});
  EXPECT_EQ(why("sm_100a", "epilogue=tma_store,swap_ab=yes"),
            Reasons{"epilogue = tma_store with swap_ab: a warp's results are columns of D, no box has them"});
  EXPECT_EQ(why("sm_100a", "epilogue=tma_store", "bf16-bf16-kk", Shape{128, 132, 64}),
            Reasons{"epilogue = tma_store: rows of D are 264 bytes apart, TMA needs a multiple of 16"});
  EXPECT_TRUE(why("sm_100a", "epilogue=tma_store", "bf16-f32-kk", Shape{128, 132, 64}).empty());
  EXPECT_EQ(why("sm_100a", "stream_k=yes"),
            Reasons{"stream_k shares the work among the CTAs of a static persistent grid"});
  EXPECT_EQ(why("sm_100a", "stream_k=yes,persistent=static,split_k=2"),
            Reasons{"stream_k cuts K itself: split_k must be 1"});
  EXPECT_EQ(why("sm_100a", "split_k=8", "bf16-bf16-kk", Shape{4096, 4096, 4096}),
            Reasons{"split_k = 8: partial sums take 512 MiB > 128 MiB of workspace"});
  EXPECT_TRUE(why("sm_100a", "split_k=8", "bf16-bf16-kk", Shape{64, 8192, 8192}).empty());
  EXPECT_TRUE(why("sm_100a", "acc_slots=2,persistent=clc").empty());
}

TEST(Sm100Plans, SplitAndSwapShapeTheGrid) {
  // 1 x 8192 outputs along the MMA's rows: 64 tiles of 128, each in 4 parts, and a workspace for all of them.
  LaunchPlan p = plan("sm_100a", "swap_ab=yes,tile_n=16,split_k=4", {1, 8192, 8192}, {148, 0});
  EXPECT_EQ(p.grid.x, 256u);
  EXPECT_EQ(p.workspace_bytes, 1024 + 256 * 128 * 16 * 4);
  // K has one k-tile: nothing to cut.
  EXPECT_EQ(plan("sm_100a", "swap_ab=yes,tile_n=16,split_k=4", {1, 8192, 64}, {148, 0}).grid.x, 64u);
  // Two unfinished tiles a CTA.
  p = plan("sm_100a", "stream_k=yes,persistent=static", {4096, 4096, 4096}, {148, 148});
  EXPECT_EQ(p.grid.x, 148u);
  EXPECT_EQ(p.workspace_bytes, 4096 + 2 * 148 * 128 * 128 * 4);
  // The asking warp.
  EXPECT_EQ(plan("sm_100a", "persistent=clc", {4096, 4096, 4096}, {148, 148}).block.x, 224u);
  EXPECT_EQ(plan("sm_100a", "persistent=clc", {4096, 4096, 4096}, {148, 148}).grid.x, 1024u);
}

TEST(Sm100Rules, RefuseWhatCoordinatesCannotReach) {
  EXPECT_EQ(why("sm_100a", "", "bf16-bf16-kk", Shape{2147483647, 128, 64}),
            Reasons{"M = 2147483647 in tiles of 128 ends beyond coordinate 2147483647"});
  EXPECT_EQ(why("sm_100a", "tile_n=16", "bf16-bf16-kk", Shape{1 << 30, 1 << 30, 64}),
            Reasons{"562949953421312 clusters of 1 CTAs > 2147483647, the largest grid"});
  EXPECT_TRUE(why("sm_100a", "", "bf16-bf16-kk", Shape{2147483520, 128, 64}).empty());
}

// A walk judges a rule as soon as the knobs that it names are set: what it does not name must not matter to
// it.
TEST(Rules, ReadOnlyTheKnobsThatTheyName) {
  std::mt19937_64 random(20261130);
  for (const ArchSpec& arch : archs()) {
    const KernelFamily& family = family_for(arch);
    auto draw = [&](const Knob& knob) { return knob.values[random() % knob.values.size()]; };
    for (int i = 0; i < 3000; ++i) {
      ProblemClass cls{i % 7 ? DType::bf16 : DType::f16, static_cast<DType>(i % 3),
                       i % 2 ? Major::mn : Major::k, i / 2 % 2 ? Major::mn : Major::k, i % 11 == 0};
      std::optional<Shape> shape;
      if (i % 5 == 0) shape = Shape{256, 1024, 512};
      if (i % 5 == 1) shape = Shape{392, 520, 1096};
      const ConstraintScope scope{arch, cls, shape};
      Config config = family.default_config();
      for (size_t k = 0; k < config.values.size(); ++k) config.values[k] = draw(family.knobs()[k]);
      for (const Constraint& constraint : family.constraints()) {
        Config other = config;
        for (size_t k = 0; k < other.values.size(); ++k)
          if (std::ranges::find(constraint.knobs, family.knobs()[k].name) == constraint.knobs.end())
            other.values[k] = draw(family.knobs()[k]);
        ASSERT_EQ(constraint.violated(config, scope), constraint.violated(other, scope))
            << constraint.name << ": " << to_text(family.knobs(), config) << " and "
            << to_text(family.knobs(), other);
      }
    }
  }
}

// The first and the last rung of that ladder are legal configurations.
TEST(Sm100Rules, AllowTheLaddersEnds) {
  EXPECT_TRUE(why("sm_100a", "stages=1,tile_k=16,swizzle_a=none,swizzle_b=none,tile_n=256").empty());
  EXPECT_TRUE(
      why("sm_100a", "stages=6,tile_n=256,cta_group=2,cluster_m=2,persistent=static,acc_slots=2").empty());
}

TEST(Sm90Rules, RefuseWithNumbers) {
  EXPECT_EQ(
      why("sm_90a", "tile_m=256,tile_n=256,stages=2"),
      Reasons{"256 x 256 accumulators over 2 consumers = 256 registers a thread > 192 that leave room"});
  EXPECT_EQ(why("sm_90a", "tile_m=64,consumers=2"),
            Reasons{"tile_m = 64 cannot be cut into 2 consumers of whole 64-row MMAs"});
}

TEST(Plan, CoversTheMatrixOnceAndPersistentFitsTheDevice) {
  LaunchPlan tiles = plan("sm_90a", "tile_m=128,tile_n=128", {1000, 1000, 512}, {132, 0});
  EXPECT_EQ(tiles.grid, (Dim3{64, 1, 1}));
  EXPECT_EQ(tiles.block.x, 384u);
  LaunchPlan clusters = plan("sm_90a", "cluster_m=2,cluster_n=2", {1000, 1000, 512}, {132, 0});
  EXPECT_EQ(clusters.grid.x, 64u);
  EXPECT_EQ(clusters.cluster.x, 4u);
  LaunchPlan persistent =
      plan("sm_90a", "cluster_m=2,cluster_n=2,persistent=static", {8192, 8192, 512}, {132, 30});
  EXPECT_EQ(persistent.grid.x, 120u);
  LaunchPlan few = plan("sm_90a", "persistent=static", {128, 256, 512}, {132, 132});
  EXPECT_EQ(few.grid.x, 2u);
}

TEST(Plan, TensorMapsFollowMajornessAndSharing) {
  LaunchPlan k_major =
      plan("sm_100a", "tile_n=256,cta_group=2,cluster_m=4,cluster_n=2", {4096, 8192, 512}, {148, 0});
  const auto& a = std::get<TensorMapSpec>(k_major.args[0]);
  EXPECT_EQ(a.dims[0], 512u);
  EXPECT_EQ(a.dims[1], 4096u);
  EXPECT_EQ(a.box[0], 64u);
  EXPECT_EQ(a.box[1], 64u);  // 128 rows, each of two CTAs fetches half
  const auto& b = std::get<TensorMapSpec>(k_major.args[1]);
  EXPECT_EQ(b.dims[1], 8192u);
  EXPECT_EQ(b.box[1], 64u);  // half of 256 columns a CTA, shared by two pairs
  LaunchPlan mn_major = plan("sm_100a", "tile_k=32,swizzle_a=64B", {4096, 8192, 512}, {148, 0}, "f16-f16-mn");
  const auto& am = std::get<TensorMapSpec>(mn_major.args[0]);
  EXPECT_EQ(am.dims[0], 4096u);
  EXPECT_EQ(am.box[0], 32u);
  EXPECT_EQ(am.box[1], 32u);
  EXPECT_EQ(am.swizzle, Swizzle::b64);
}

TEST(Plan, TensorMemoryIsAPowerOfTwo) {
  const KernelFamily& family = family_for(find_arch("sm_100a"));
  auto columns = [&](std::string_view config) {
    return family.tmem_columns(parse_config(family.knobs(), config));
  };
  EXPECT_EQ(columns("tile_n=16"), 32);
  EXPECT_EQ(columns("tile_n=192"), 256);
  EXPECT_EQ(columns("tile_n=192,persistent=static,acc_slots=2"), 512);
  EXPECT_EQ(columns("tile_n=256,persistent=static,acc_slots=2"), 512);
}

// The seed's own counts: section 4 of 000_b7f4eb2624be9cfc.txt prints mma and tma.load for four
// configurations.
TEST(ExpectedCounts, EqualTheLadders) {
  const KernelFamily& family = family_for(find_arch("sm_100a"));
  auto counts = [&](std::string_view config) {
    return family.expected_counts(parse_config(family.knobs(), config), ProblemClass{DType::f16, DType::f16});
  };
  EXPECT_EQ(counts("stages=1,tile_k=16,tile_n=256,swizzle_a=none,swizzle_b=none").mma, 1);
  EXPECT_EQ(counts("stages=1,tile_k=16,tile_n=256,swizzle_a=none,swizzle_b=none").tma_load, 4);
  EXPECT_EQ(counts("stages=4,tile_k=64,tile_n=256,swizzle_a=none,swizzle_b=none").tma_load, 16);
  EXPECT_EQ(counts("stages=4,tile_k=64,tile_n=256").mma, 4);
  EXPECT_EQ(counts("stages=4,tile_k=64,tile_n=256").tma_load, 2);
}

}  // namespace
}  // namespace gemmtune
