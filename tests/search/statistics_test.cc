// The statistics on synthetic samples.
#include "search/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "search/launch_cost.h"

namespace gemmtune {
namespace {

/// Uniform in [0, 1); the same on every machine.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed) {}
  double operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return double(state_ >> 40) / double(1 << 24);
  }

 private:
  uint64_t state_;
};

std::vector<Sample> in_rounds(const std::vector<double>& times, int first_round = 0) {
  std::vector<Sample> samples;
  for (double us : times) samples.push_back({us, 1, first_round++, true, 0, 0, 0, 0});
  return samples;
}

TEST(MedianInterval, TakesTheOrderStatisticsOfTheSignTest) {
  auto numbers = [](int n) {
    std::vector<double> values;
    for (int i = n; i > 0; --i) values.push_back(i);
    return values;
  };
  // Textbook ranks for 95 %.
  EXPECT_EQ(median_interval(numbers(6)), (Interval{1, 6}));
  EXPECT_EQ(median_interval(numbers(9)), (Interval{2, 8}));
  EXPECT_EQ(median_interval(numbers(12)), (Interval{3, 10}));
  EXPECT_EQ(median_interval(numbers(20)), (Interval{6, 15}));
  EXPECT_EQ(median_interval(numbers(30)), (Interval{10, 21}));
  EXPECT_EQ(median_interval(numbers(4)), (Interval{1, 4}));  // no 95 % with four: all there is
  EXPECT_EQ(median_interval({7}), (Interval{7, 7}));
}

/// The clock falls by a fifth during the rounds, both candidates feel it, and the noise is one-sided, as that
/// of times is. The paired interval covers as often as it says and stays narrow; unpaired ones cannot.
TEST(TimeRatio, CoversTheTrueRatioUnderADriftThatBothFeel) {
  constexpr int kRuns = 2000;
  Noise noise(7);
  int covered = 0;
  double width = 0, unpaired_width = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> slow, fast;
    for (int round = 0; round < 12; ++round) {
      double drift = 1 + 0.2 * round / 11;
      auto skewed = [&] { return 1 - 0.004 * std::log(1 - noise()); };
      slow.push_back(1.05 * drift * skewed());
      fast.push_back(drift * skewed());
    }
    TimeRatio ratio = time_ratio(in_rounds(slow), in_rounds(fast));
    EXPECT_EQ(ratio.rounds, 12u);
    covered += ratio.interval.low <= 1.05 && 1.05 <= ratio.interval.high;
    width += (ratio.interval.high - ratio.interval.low) / kRuns;
    if (run < 20) {
      Interval unpaired = ratio_interval(slow, fast, 400, 1);
      unpaired_width += (unpaired.high - unpaired.low) / 20;
    }
  }
  // Exact for 12 rounds: 96.1 %; three standard errors are 1.3 %.
  EXPECT_GE(covered, 0.948 * kRuns);
  EXPECT_LE(covered, 0.974 * kRuns);
  EXPECT_LT(width, 0.012);
  EXPECT_GT(unpaired_width, 0.1);
}

TEST(TimeRatio, WithoutSharedRoundsMediansAreCompared) {
  TimeRatio ratio =
      time_ratio(in_rounds({11, 11, 11, 11, 11, 11, 11}, 100), in_rounds({10, 10, 10, 10, 10, 10}));
  EXPECT_EQ(ratio.rounds, 0u);
  EXPECT_DOUBLE_EQ(ratio.median, 1.1);
  EXPECT_DOUBLE_EQ(ratio.interval.low, 1.1);
}

TEST(TimeRatio, Standings) {
  EXPECT_EQ(standing({1.01, {1.0, 1.019}, 12}), Standing::tied);
  EXPECT_EQ(standing({1.01, {1.0, 1.021}, 12}), Standing::undecided);
  EXPECT_EQ(standing({1.05, {1.021, 1.07}, 12}), Standing::slower);
}

TEST(RatioInterval, CoversAndIsDeterministic) {
  std::vector<double> slow, fast;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(12 + 0.1 * std::sin(i * 1.7));
    fast.push_back(10 + 0.1 * std::sin(i * 2.3));
  }
  auto [low, high] = ratio_interval(slow, fast, 2000, 1);
  EXPECT_LT(low, 1.2);
  EXPECT_GT(high, 1.2);
  EXPECT_GT(low, 1.17);
  EXPECT_LT(high, 1.23);
  EXPECT_EQ(ratio_interval(slow, fast, 2000, 1), (Interval{low, high}));
  EXPECT_NE(ratio_interval(slow, fast, 2000, 2), (Interval{low, high}));
}

TEST(RatioInterval, KnownValues) {
  std::vector<double> two = {2}, four = {4};
  EXPECT_EQ(ratio_interval(four, two, 100, 1), (Interval{2.0, 2.0}));  // one sample has no spread
  std::vector<double> pair = {1, 3};
  EXPECT_EQ(ratio_interval(pair, two, 1000, 1), (Interval{0.5, 1.5}));  // medians 1, 2 (the mean) or 3
  EXPECT_THROW(ratio_interval({}, two, 100, 1), std::invalid_argument);
}

/// Coverage of the 95 % interval on simulated medians: near 95 %, and not by being wide.
TEST(RatioInterval, CoversTheTrueRatioAboutAsOftenAsItSays) {
  Noise uniform(7);
  auto noise = [&] { return 0.1 * (uniform() + uniform() - 1); };  // triangular, sd 0.041
  int covered = 0;
  double width = 0;
  constexpr int kRuns = 200;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> a, b;
    for (int i = 0; i < 30; ++i) {
      a.push_back(1.1 * (1 + noise()));
      b.push_back(1 + noise());
    }
    auto [low, high] = ratio_interval(a, b, 400, static_cast<uint64_t>(run));
    covered += low <= 1.1 && 1.1 <= high;
    width += (high - low) / kRuns;
  }
  EXPECT_GE(covered, 0.88 * kRuns);
  EXPECT_LT(width, 0.08);
}

TEST(LaunchCost, IsBoundOnlyBeyondDoubt) {
  std::vector<double> plain(6, 5.0), graph(6, 3.0);
  LaunchCost cost = judge_launches(plain, graph);
  EXPECT_TRUE(cost.launch_bound);
  EXPECT_DOUBLE_EQ(cost.graph_us, 3);
  EXPECT_FALSE(judge_launches(plain, std::vector<double>(6, 4.9)).launch_bound);  // 2 %: no
  graph[2] = 4.9;                                                                 // not in every pair: noise
  EXPECT_FALSE(judge_launches(plain, graph).launch_bound);
  EXPECT_THROW(judge_launches(plain, {}), std::invalid_argument);
}

}  // namespace
}  // namespace gemmtune
