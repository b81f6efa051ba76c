// Comparing against a recording fake: no CUDA, no library.
#include "search/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gemmtune {
namespace {

struct FakeGpu : Executor {
  std::map<int, std::string> ours;
  int first_library = 1 << 30;
  std::vector<double> library_us = {10, 30, 9.5, 9.4, 50};
  int wrong_algorithm = 3;  ///< the fastest
  std::vector<std::pair<Regime, int>> order;
  int samples = 0, mark_every = 0;
  double graph_us = 0;

  GraphResult sample_graph(int, bool) override { return {{}, 10, graph_us}; }

  DeviceRecord device() const override { return {"GPU-fake", "NVIDIA H200", "sm_90a", 132, 60 << 20, 0, ""}; }
  StepResult begin_problem(const Problem&, float, float) override { return {}; }
  StepResult prepare(int handle, const Variant& v, const CompiledKernel&) override {
    ours[handle] = to_text(v.family->knobs(), v.config);
    return {};
  }
  LibraryResult prepare_library(int first_handle, int at_most) override {
    first_library = first_handle;
    LibraryResult result{{}, "cuBLASLt 13.1.0", {}};
    for (size_t i = 0; i < library_us.size() && static_cast<int>(i) < at_most; ++i)
      result.algorithms.push_back({"algo " + std::to_string(i), 0});
    return result;
  }
  ValidationResult validate(int handle) override {
    ValidationResult result{{}, {ValidatedBy::gpu, {{}}}};
    bool wrong = handle == first_library + wrong_algorithm ||
                 (handle < first_library && ours.at(handle).find("stages=2,") == 0);
    if (wrong) result.outcome = Outcome::wrong_result;
    return result;
  }
  SampleResult sample(int handle, Regime regime, bool) override {
    SampleResult result;
    order.emplace_back(regime, handle);
    // A drift of 10 % over the run, which all feel.
    result.sample.time_us =
        handle >= first_library ? library_us.at(static_cast<size_t>(handle - first_library)) : 9.8;
    result.sample.time_us *= 1 + 0.001 * ++samples;
    if (mark_every > 0 && samples % mark_every == 0) result.sample.mark = SampleMark::contended;
    return result;
  }
};

struct CompareTest : testing::Test {
  FakeGpu gpu;
  CompareOptions options;
  Problem problem{{}, {256, 256, 256}};
  std::vector<Entrant> entrants;

  CompareTest() {
    options.repeat_pause = std::chrono::milliseconds(0);
    enter("winner", "");
  }
  void enter(const std::string& who, const std::string& config) {
    const ArchSpec& arch = find_arch("sm_90a");
    const KernelFamily& family = family_for(arch);
    entrants.push_back({who, {&family, &arch, {}, parse_config(family.knobs(), config)}, {}});
  }
  const Compared& row(const Comparison& c, const std::string& who) {
    auto found = std::ranges::find(c.rows, who, &Compared::who);
    EXPECT_NE(found, c.rows.end()) << who;
    return *found;
  }
};

TEST_F(CompareTest, TheWinnerBesideTheLibrarysFirstAndBest) {
  Comparison c = compare(gpu, problem, entrants, options);
  ASSERT_EQ(c.rows.size(), 3u);
  EXPECT_EQ(c.rows[0].who, "winner");
  EXPECT_EQ(c.rows[0].ratio.median, 1);
  EXPECT_EQ(row(c, "cuBLASLt 13.1.0 first").what, "algo 0");
  // The fastest is wrong, so it is not the best; the drift is out of the ratios.
  EXPECT_EQ(c.algorithms, 5);
  EXPECT_EQ(c.wrong_algorithms, 1);
  const Compared& best = row(c, "cuBLASLt 13.1.0 best");
  EXPECT_EQ(best.what, "algo 2");
  EXPECT_NEAR(best.ratio.median, 9.5 / 9.8, 0.003);
  EXPECT_LT(best.ratio.interval.high, 1);
  EXPECT_EQ(best.ratio.rounds, 20u);
  EXPECT_EQ(best.samples.size(), 20u);
}

TEST_F(CompareTest, SlowAlgorithmsAreLeftAfterTheFirstLook) {
  compare(gpu, problem, entrants, options);
  std::map<int, int> count;
  for (auto [regime, handle] : gpu.order) ++count[handle];
  EXPECT_EQ(count[gpu.first_library + 0], 30);
  EXPECT_EQ(count[gpu.first_library + 1], 3 + 20) << "fewer than four: all go on";
  EXPECT_EQ(count[gpu.first_library + 3], 0) << "a wrong one is not timed";
  EXPECT_EQ(count[0], 20);
}

TEST_F(CompareTest, TheLibrarysWrongFirstChoiceIsTimedAndNamed) {
  gpu.wrong_algorithm = 0;
  Comparison c = compare(gpu, problem, entrants, options);
  const Compared& first = row(c, "cuBLASLt 13.1.0 first");
  EXPECT_EQ(first.outcome.outcome, Outcome::wrong_result);
  EXPECT_GT(first.median_us, 0);
  EXPECT_EQ(row(c, "cuBLASLt 13.1.0 best").what, "algo 3");
}

TEST_F(CompareTest, AWrongVariantIsNotTimed) {
  enter("--set", "stages=2");
  Comparison c = compare(gpu, problem, entrants, options);
  EXPECT_EQ(row(c, "--set").median_us, 0);
  EXPECT_EQ(row(c, "--set").outcome.outcome, Outcome::wrong_result);
}

TEST_F(CompareTest, WithoutAVariantTheLibraryIsItsOwnReference) {
  Comparison c = compare(gpu, problem, {}, options);
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.rows[0].ratio.median, 1);
  EXPECT_NEAR(c.rows[1].ratio.median, 0.95, 0.003);
}

TEST_F(CompareTest, WithoutTheLibraryVariantsAreComparedAlone) {
  options.algorithms = 0;
  enter("other", "stages=3");
  Comparison c = compare(gpu, problem, entrants, options);
  EXPECT_EQ(c.rows.size(), 2u);
  EXPECT_TRUE(c.library_problem.empty());
  EXPECT_EQ(gpu.order.size(), 40u);
}

TEST_F(CompareTest, SustainedAlternatesWithTheFirst) {
  options.regime = Regime::sustained;
  options.rounds = 6;
  Comparison c = compare(gpu, problem, entrants, options);
  std::vector<int> blocks;
  for (auto [regime, handle] : gpu.order)
    if (regime == Regime::sustained) blocks.push_back(handle);
  ASSERT_EQ(blocks.size(), 2u * 6 * 4);
  for (size_t i = 0; i < blocks.size(); i += 2) EXPECT_EQ((blocks[i] == 0) + (blocks[i + 1] == 0), 1) << i;
  EXPECT_EQ(row(c, "cuBLASLt 13.1.0 best").ratio.rounds, 6u);
}

TEST_F(CompareTest, WhatIsLaunchBoundIsSaid) {
  gpu.graph_us = 4;
  Comparison c = compare(gpu, problem, entrants, options);
  ASSERT_TRUE(row(c, "cuBLASLt 13.1.0 first").launch_cost);
  EXPECT_TRUE(row(c, "cuBLASLt 13.1.0 first").launch_cost->launch_bound);
  gpu.graph_us = 0;  // no graphs here
  EXPECT_FALSE(compare(gpu, problem, entrants, options).rows[0].launch_cost);
}

TEST_F(CompareTest, DisturbedSamplesAreRepeatedAndBounded) {
  gpu.mark_every = 4;
  Comparison c = compare(gpu, problem, entrants, options);
  EXPECT_EQ(c.marked, gpu.samples / 4);
  EXPECT_EQ(c.rows[0].samples.size(), 20u);
  gpu.mark_every = 1;
  c = compare(gpu, problem, entrants, options);
  EXPECT_EQ(c.rows[0].median_us, 0);
  EXPECT_NE(c.rows[0].outcome.message.find("disturbed"), std::string::npos);
}

}  // namespace
}  // namespace gemmtune
