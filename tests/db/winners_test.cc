// The statistics on plain numbers, and the recomputation of stored winners.
#include "db/winners.h"

#include <algorithm>

#include "db/check.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

Contender contender(int64_t id, const std::string& config, const std::vector<double>& finals,
                    int first_round = 0) {
  Contender c{id, "f", config, {}, 0};
  for (double us : finals) c.samples.push_back({us, 1, first_round++, true, 0, 0, 0, 0});
  c.median_us = median(finals);
  return c;
}

const Simplicity kByLength = [](std::string_view, std::string_view config) {
  return static_cast<int>(config.size());
};

/// Twelve rounds under a drift of 10 %, felt by all.
std::vector<double> drifting(double us) {
  std::vector<double> times;
  for (int i = 0; i < 12; ++i) times.push_back(us * (1 + 0.1 * i / 11 + 0.002 * (i % 3)));
  return times;
}

TEST(Choose, SeparatesByRoundsWhatMediansCannot) {
  // 3 % apart under a drift of 10 %: the rounds tell them apart.
  std::vector<Contender> apart = {contender(1, "a", drifting(10)), contender(2, "b", drifting(10.3))};
  Choice choice = choose(apart, {}, kByLength);
  EXPECT_EQ(choice.tied, (std::vector<size_t>{0}));
  EXPECT_EQ(choice.runner_up, 1u);
  // The same times from another day share no round: nothing is sure, a tie.
  apart[1] = contender(2, "b", drifting(10.3), 100);
  choice = choose(apart, {}, kByLength);
  EXPECT_EQ(choice.tied, (std::vector<size_t>{0, 1}));
  EXPECT_LT(choice.ratios[1].interval.low, 1);
}

TEST(Choose, SurelySlowerByLessThanTwoPercentIsATie) {
  std::vector<Contender> near = {contender(1, "a", drifting(10)), contender(2, "b", drifting(10.15))};
  Choice choice = choose(near, {}, kByLength);
  EXPECT_EQ(choice.tied.size(), 2u);
  EXPECT_NEAR(choice.ratios[1].interval.low, 1.015, 1e-9);
}

TEST(Choose, TheIncumbentStaysUnlessTheGainIsWorthwhileAndSure) {
  std::vector<Contender> both = {contender(1, "new", drifting(10)),
                                 contender(2, "the old one", drifting(10.15))};
  Choice choice = choose(both, 2, kByLength);
  EXPECT_EQ(choice.winner, 1u);
  EXPECT_TRUE(choice.no_change);
  both[1] = contender(2, "the old one", drifting(10.3));
  choice = choose(both, 2, kByLength);
  EXPECT_EQ(choice.winner, 0u);
  EXPECT_FALSE(choice.no_change);
  choice = choose(both, 77, kByLength);  // an incumbent that is not among them
  EXPECT_EQ(choice.winner, 0u);
}

TEST(Choose, EqualsDoNotDependOnOrder) {
  std::vector<Contender> equals = {contender(1, "bb", drifting(10)), contender(2, "ab", drifting(10)),
                                   contender(3, "ccc", drifting(10))};
  EXPECT_EQ(equals[choose(equals, {}, kByLength).winner].config, "ab");
  std::ranges::reverse(equals);
  EXPECT_EQ(equals[choose(equals, {}, kByLength).winner].config, "ab");
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
    return recompute_winner(store_, problem(), device_, {}, kByLength, rules);
  }
  static std::vector<int64_t> tied(const std::optional<Winner>& winner) {
    std::vector<int64_t> ids;
    for (const Tie& tie : winner->ties) ids.push_back(tie.trial_id);
    return ids;
  }
  int64_t due() { return query_integer(store_.connection(), "SELECT count(*) FROM winner_due"); }

  Store store_;
  int64_t device_;
};

TEST_F(WinnersTest, BestMedianWithTieSetAndInterval) {
  int64_t slow = add("slow=1", 13), tie = add("tie=1", 10.15), best = add("best=1", 10),
          next = add("next=1", 10.5);
  store_.record_trial(failed_trial(problem(), "wrong=1", Outcome::wrong_result), device_);
  std::optional<Winner> winner = recompute();
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->trial_id, best);
  EXPECT_EQ(winner->median_us, 10);
  EXPECT_EQ(tied(winner), (std::vector<int64_t>{best, tie}));
  EXPECT_EQ(winner->ties[0].ratio, (Interval{1, 1}));
  EXPECT_DOUBLE_EQ(winner->ties[1].ratio.low, 1.015);
  EXPECT_DOUBLE_EQ(winner->ratio_low, 1.05);  // against the nearest outside, not the slowest
  EXPECT_DOUBLE_EQ(winner->ratio_high, 1.05);
  EXPECT_NE(winner->evidence.find("validated by gpu in 1 cases (sharp)"), std::string::npos)
      << winner->evidence;
  EXPECT_EQ(winner->device_uuid, "GPU-1");
  std::optional<Winner> stored = store_.winner(problem(), device_, {});
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->trial_id, winner->trial_id);
  EXPECT_EQ(stored->median_us, winner->median_us);
  EXPECT_EQ(stored->ties, winner->ties);
  EXPECT_EQ(stored->final_rounds, 0);
  EXPECT_EQ(stored->ratio_low, winner->ratio_low);
  EXPECT_EQ(stored->ratio_high, winner->ratio_high);
  EXPECT_EQ(stored->evidence, winner->evidence);
  EXPECT_FALSE(store_.winner(problem(), device_, {.regime = Regime::sustained}));
  EXPECT_TRUE(check_integrity(store_).empty());
  (void)slow;
  (void)next;
}

TEST_F(WinnersTest, NoiseWidensTheTieSet) {
  int64_t best = add("best=1", 10, 0.05), noisy = add("noisy=1", 10.4, 0.07);
  add("steady=1", 10.6, 0.0);
  EXPECT_EQ(tied(recompute()), (std::vector<int64_t>{best, noisy}));
}

TEST_F(WinnersTest, TheSimplerOfEqualsWins) {
  add("complicated=1", 10);
  int64_t simple = add("a=1", 10.04), simple_by_text = add("b=1", 10.01);
  add("c", 10.15);  // the simplest, in the tie set, but 1.5 % slower
  EXPECT_EQ(recompute()->trial_id, simple);
  WinnerRules strict;
  strict.choice_margin = 1.002;
  EXPECT_EQ(recompute(strict)->trial_id, simple_by_text);
}

TEST_F(WinnersTest, NothingRankableMeansNoWinner) {
  EXPECT_FALSE(recompute());
  int64_t best = add("a=1", 10);
  EXPECT_EQ(recompute()->ratio_high, 0);  // nobody outside the tie set
  store_.update_validation(best, Outcome::wrong_result, "", {});
  EXPECT_FALSE(recompute());
  EXPECT_FALSE(store_.winner(problem(), device_, {}));
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
  EXPECT_EQ(winner->ties.size(), 1u);
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
  EXPECT_EQ(winner->ties.size(), 1u);
  EXPECT_DOUBLE_EQ(winner->ratio_low, 15.0 / 12);  // from the fresh samples alone
  EXPECT_TRUE(check_integrity(store_).empty());
}

TEST_F(WinnersTest, ASettledWinnerStaysUnderTwoPercent) {
  auto finals = [&](int64_t id, double us) {
    std::vector<Sample> samples;
    for (int round = 0; round < 12; ++round) samples.push_back({us, 1, round, true, 1, 1, 1, 1});
    store_.append_samples(id, samples);
  };
  int64_t old = add("the=old", 10);
  EXPECT_EQ(recompute()->final_rounds, 0);
  int64_t screened = add("s=1", 9.9);
  EXPECT_EQ(recompute()->trial_id, screened) << "what the screening alone chose is not settled";
  finals(old, 10);
  EXPECT_EQ(recompute()->final_rounds, 12);
  int64_t fresh = add("n=1", 9.9);
  finals(fresh, 9.85);
  std::optional<Winner> winner = recompute();
  EXPECT_EQ(winner->trial_id, old);
  EXPECT_EQ(tied(winner), (std::vector<int64_t>{fresh, old}));
  EXPECT_NE(winner->evidence.find("no change: the best median is 1.52 % faster"), std::string::npos)
      << winner->evidence;
  EXPECT_TRUE(check_integrity(store_).empty());
  int64_t faster = add("f=1", 9.9);
  finals(faster, 9.7);
  EXPECT_EQ(recompute()->trial_id, faster);
}

TEST_F(WinnersTest, SixSustainedRoundsSettle) {
  const Timing sustained{.regime = Regime::sustained};
  auto add_finals = [&](const std::string& config, double us) {
    Trial trial = ok_trial(problem(), config, {}, Regime::sustained);
    for (int round = 0; round < 6; ++round)
      trial.measurement->samples.push_back({us, 1, round, true, 1, 1, 1, 1});
    return store_.record_trial(trial, device_).id;
  };
  int64_t old = add_finals("the=old", 10);
  EXPECT_EQ(recompute_winner(store_, problem(), device_, sustained, kByLength)->trial_id, old);
  add_finals("n=1", 9.9);
  EXPECT_EQ(recompute_winner(store_, problem(), device_, sustained, kByLength)->trial_id, old);
}

TEST_F(WinnersTest, ColdAndWarmHaveWinnersOfTheirOwn) {
  int64_t cold = add("a=1", 10);
  Trial trial = ok_trial(problem(), "b=1", {5});
  trial.measurement->warm_l2 = true;
  int64_t warm = store_.record_trial(trial, device_).id;
  EXPECT_EQ(refresh_winners(store_, kByLength), 2);
  EXPECT_EQ(store_.winner(problem(), device_, {})->trial_id, cold);
  EXPECT_EQ(store_.winner(problem(), device_, {.warm_l2 = true})->trial_id, warm);
  EXPECT_FALSE(store_.winner(problem(), device_, {.protocol = "p2"}));
  EXPECT_TRUE(check_integrity(store_).empty());
  Statement swap(store_.connection(), "UPDATE winner SET trial_id = ? WHERE warm = 0");
  swap.bind(warm);
  EXPECT_THROW(swap.run(), ConstraintError);
}

TEST_F(WinnersTest, MarkedSamplesMakeNoTime) {
  int64_t id = add("a=1", 10);
  std::vector<Sample> hot(12, Sample{5, 1, 1, true, 1, 1, 1, 0x40, SampleMark::throttled});
  store_.append_samples(id, hot);
  EXPECT_EQ(recompute()->median_us, 10);
  EXPECT_EQ(store_.trial(id)->trial.measurement->samples.back().mark, SampleMark::throttled);
  Trial only_marked = ok_trial(problem(64), "a=1", {});
  only_marked.measurement->samples = hot;
  int64_t without = store_.record_trial(only_marked, device_).id;
  EXPECT_FALSE(recompute_winner(store_, problem(64), device_, {}, kByLength));
  EXPECT_TRUE(check_integrity(store_).empty());
  store_.append_samples(without, std::vector<Sample>(3, Sample{7, 1, 2, false, 1, 1, 1, 0}));
  EXPECT_EQ(recompute_winner(store_, problem(64), device_, {}, kByLength)->median_us, 7);
}

TEST_F(WinnersTest, RefreshSettlesWhatIsDue) {
  add("a=1", 10);
  store_.record_trial(ok_trial(problem(64), "a=1", {3}, Regime::sustained), device_);
  EXPECT_EQ(due(), 2);
  EXPECT_EQ(refresh_winners(store_, kByLength), 2);
  EXPECT_EQ(due(), 0);
  EXPECT_EQ(refresh_winners(store_, kByLength), 0);
  EXPECT_TRUE(store_.winner(problem(64), device_, {.regime = Regime::sustained}));
  int64_t faster = add("b=1", 9);
  EXPECT_TRUE(check_integrity(store_).empty());  // stale, but marked
  refresh_winners(store_, kByLength);
  EXPECT_EQ(store_.winner(problem(), device_, {})->trial_id, faster);
  std::vector<Sample> slow_samples(20, Sample{50, 1, 1, false, 1, 1, 1, 1});
  store_.append_samples(faster, slow_samples);
  EXPECT_EQ(refresh_winners(store_, kByLength), 1);
  EXPECT_NE(store_.winner(problem(), device_, {})->trial_id, faster);
}

}  // namespace
}  // namespace gemmtune
