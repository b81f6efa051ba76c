// The statistics on plain numbers, and the recomputation of stored winners.
#include "db/winners.h"

#include <cmath>

#include "db/check.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

TEST(TieThreshold, IsTheNoiseWithinFloorAndCeiling) {
  WinnerRules rules;
  EXPECT_DOUBLE_EQ(tie_threshold({10, 0.001}, {10, 0.002}, rules), 0.02);
  EXPECT_DOUBLE_EQ(tie_threshold({10, 0.03}, {10, 0.04}, rules), 0.05);
  EXPECT_DOUBLE_EQ(tie_threshold({10, 0.03}, {10, 0.9}, rules), 0.10);
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
  EXPECT_EQ(ratio_interval(slow, fast, 2000, 1), std::pair(low, high));
  EXPECT_NE(ratio_interval(slow, fast, 2000, 2), std::pair(low, high));
}

TEST(RatioInterval, KnownValues) {
  std::vector<double> two = {2}, four = {4};
  EXPECT_EQ(ratio_interval(four, two, 100, 1), std::pair(2.0, 2.0));  // one sample has no spread
  std::vector<double> pair = {1, 3};
  EXPECT_EQ(ratio_interval(pair, two, 1000, 1), std::pair(0.5, 1.5));  // medians 1, 2 (the mean) or 3
  EXPECT_THROW(ratio_interval({}, two, 100, 1), std::invalid_argument);
}

/// Coverage of the 95 % interval on simulated medians: near 95 %, and not by being wide.
TEST(RatioInterval, CoversTheTrueRatioAboutAsOftenAsItSays) {
  uint64_t state = 7;
  auto noise = [&] {  // triangular, sd 0.041
    auto uniform = [&] {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return double(state >> 40) / double(1 << 24);
    };
    return 0.1 * (uniform() + uniform() - 1);
  };
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

class WinnersTest : public DbTest {
 protected:
  WinnersTest() : store_(path()), device_(store_.device_id(h200())) {}
  int64_t add(const std::string& config, double us, double spread = 0, const std::string& kernel_key = "") {
    // Quartiles at us * (1 -+ spread / 2).
    double low = us * (1 - spread / 2), high = us * (1 + spread / 2);
    Trial trial = ok_trial(problem(), config, {low, low, us, high, high});
    trial.kernel_key = kernel_key;
    return store_.record_trial(trial, device_).id;
  }
  std::optional<Winner> recompute(const WinnerRules& rules = {}) {
    return recompute_winner(store_, problem(), device_, Regime::burst, simplicity_, rules);
  }
  int64_t due() { return query_integer(store_.connection(), "SELECT count(*) FROM winner_due"); }

  Store store_;
  int64_t device_;
  Simplicity simplicity_ = [](std::string_view, std::string_view config) {
    return static_cast<int>(config.size());
  };
};

TEST_F(WinnersTest, BestMedianWithTieSetAndInterval) {
  int64_t slow = add("slow=1", 13), tie = add("tie=1", 10.15), best = add("best=1", 10),
          next = add("next=1", 10.5);
  store_.record_trial(failed_trial(problem(), "wrong=1", Outcome::wrong_result), device_);
  std::optional<Winner> winner = recompute();
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->trial_id, best);
  EXPECT_EQ(winner->median_us, 10);
  EXPECT_EQ(winner->tie_set, (std::vector<int64_t>{best, tie}));
  EXPECT_DOUBLE_EQ(winner->ratio_low, 1.05);  // against the nearest outside, not the slowest
  EXPECT_DOUBLE_EQ(winner->ratio_high, 1.05);
  EXPECT_NE(winner->evidence.find("validated by gpu in 1 cases (sharp)"), std::string::npos)
      << winner->evidence;
  EXPECT_EQ(winner->device_uuid, "GPU-1");
  std::optional<Winner> stored = store_.winner(problem(), device_, Regime::burst);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->trial_id, winner->trial_id);
  EXPECT_EQ(stored->median_us, winner->median_us);
  EXPECT_EQ(stored->tie_set, winner->tie_set);
  EXPECT_EQ(stored->ratio_low, winner->ratio_low);
  EXPECT_EQ(stored->ratio_high, winner->ratio_high);
  EXPECT_EQ(stored->evidence, winner->evidence);
  EXPECT_FALSE(store_.winner(problem(), device_, Regime::sustained));
  EXPECT_TRUE(check_integrity(store_).empty());
  (void)slow;
  (void)next;
}

TEST_F(WinnersTest, NoiseWidensTheTieSet) {
  int64_t best = add("best=1", 10, 0.03), noisy = add("noisy=1", 10.4, 0.04),
          steady = add("steady=1", 10.45, 0.0);
  EXPECT_EQ(recompute()->tie_set, (std::vector<int64_t>{best, noisy}));
  (void)steady;
}

TEST_F(WinnersTest, TheSimplerOfEqualsWins) {
  add("complicated=1", 10);
  int64_t simple = add("a=1", 10.04), simple_by_text = add("b=1", 10.01);
  add("c", 10.15);  // the simplest, in the tie set, but 1.5 % slower
  EXPECT_EQ(recompute()->trial_id, simple);
  WinnerRules strict;
  strict.choice_margin = 0.002;
  EXPECT_EQ(recompute(strict)->trial_id, simple_by_text);
}

TEST_F(WinnersTest, NothingRankableMeansNoWinner) {
  EXPECT_FALSE(recompute());
  int64_t best = add("a=1", 10);
  EXPECT_EQ(recompute()->ratio_high, 0);  // nobody outside the tie set
  store_.update_validation(best, Outcome::wrong_result, "", {});
  EXPECT_FALSE(recompute());
  EXPECT_FALSE(store_.winner(problem(), device_, Regime::burst));
}

TEST_F(WinnersTest, RegimesProtocolsAndCacheStatesDoNotMix) {
  int64_t burst = add("a=1", 10);
  store_.record_trial(ok_trial(problem(), "b=1", {5}, Regime::sustained), device_);
  Trial warm = ok_trial(problem(), "c=1", {5}), other = ok_trial(problem(), "d=1", {5});
  warm.measurement->warm_l2 = true;
  other.measurement->protocol = "p2";
  store_.record_trial(warm, device_);
  store_.record_trial(other, device_);
  store_.record_trial(ok_trial(problem(), "e=1", {5}), store_.device_id(h200("GPU-2")));
  std::optional<Winner> winner = recompute();
  EXPECT_EQ(winner->trial_id, burst);
  EXPECT_EQ(winner->tie_set.size(), 1u);
}

TEST_F(WinnersTest, ALaterKernelOfTheSameConfigOvertakes) {
  for (const char* key : {"old", "new", "newest"}) store_.put_kernel(kernel(key, "a=1"));
  add("a=1", 10, 0, "old");
  recompute();
  EXPECT_EQ(due(), 0);
  int64_t fresh = add("a=1", 12, 0, "new");
  EXPECT_EQ(due(), 1);
  EXPECT_EQ(recompute()->trial_id, fresh);
  Trial wrong = failed_trial(problem(), "a=1", Outcome::wrong_result);
  wrong.kernel_key = "newest";
  store_.record_trial(wrong, device_);
  EXPECT_EQ(due(), 1);
  EXPECT_FALSE(recompute());
}

TEST_F(WinnersTest, OnlyFinalistsCompeteOnceThereAreSome) {
  int64_t lucky = add("lucky=1", 9), finalist = add("a=1", 10), other = add("b=1", 11);
  EXPECT_EQ(recompute()->trial_id, lucky);
  std::vector<Sample> fresh(10, Sample{12, 1, 1, true, 1, 1, 1, 1});
  store_.append_samples(finalist, fresh);
  for (Sample& sample : fresh) sample.time_us = 15;
  store_.append_samples(other, fresh);
  std::optional<Winner> winner = recompute();
  EXPECT_EQ(winner->trial_id, finalist);
  EXPECT_EQ(winner->median_us, 12);
  EXPECT_EQ(winner->tie_set.size(), 1u);
  EXPECT_DOUBLE_EQ(winner->ratio_low, 15.0 / 12);  // from the fresh samples alone
  EXPECT_TRUE(check_integrity(store_).empty());
}

TEST_F(WinnersTest, RefreshSettlesWhatIsDue) {
  add("a=1", 10);
  store_.record_trial(ok_trial(problem(64), "a=1", {3}, Regime::sustained), device_);
  EXPECT_EQ(due(), 2);
  EXPECT_EQ(refresh_winners(store_, simplicity_), 2);
  EXPECT_EQ(due(), 0);
  EXPECT_EQ(refresh_winners(store_, simplicity_), 0);
  EXPECT_TRUE(store_.winner(problem(64), device_, Regime::sustained));
  int64_t faster = add("b=1", 9);
  EXPECT_TRUE(check_integrity(store_).empty());  // stale, but marked
  refresh_winners(store_, simplicity_);
  EXPECT_EQ(store_.winner(problem(), device_, Regime::burst)->trial_id, faster);
  std::vector<Sample> slow_samples(20, Sample{50, 1, 1, false, 1, 1, 1, 1});
  store_.append_samples(faster, slow_samples);
  EXPECT_EQ(refresh_winners(store_, simplicity_), 1);
  EXPECT_NE(store_.winner(problem(), device_, Regime::burst)->trial_id, faster);
}

}  // namespace
}  // namespace gemmtune
