#include "db/queries.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "db/check.h"
#include "db/winners.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

const Simplicity kEqual = [](std::string_view, std::string_view) { return 0; };

class BestTest : public DbTest {
 protected:
  BestTest() : store_(path()), device_(store_.device_id(h200())) {}
  Store store_;
  int64_t device_;
};

TEST_F(BestTest, WinnerRunnersUpAndCounts) {
  for (int i = 0; i < 5; ++i)
    store_.record_trial(ok_trial(problem(), "s=" + std::to_string(i), {10.0 + i}), device_);
  store_.record_trial(ok_trial(problem(), "s=9", {10.1}), device_);
  store_.record_trial(ok_trial(problem(), "s=0", {20}, Regime::sustained), device_);
  store_.record_trial(failed_trial(problem(), "x=1", Outcome::wrong_result), device_);
  store_.record_trial(failed_trial(problem(), "x=2", Outcome::compile_failed), device_);
  store_.record_trial(failed_trial(problem(), "x=3", Outcome::compile_failed), device_);
  refresh_winners(store_, kEqual);
  std::vector<BestAnswer> answers = best(store_, {.problems = {problem()}, .top = 3});
  ASSERT_EQ(answers.size(), 1u);
  const BestAnswer& a = answers[0];
  EXPECT_EQ(a.problem, problem());
  EXPECT_EQ(a.device.name, "NVIDIA H200");
  EXPECT_EQ(a.basis, Basis::measured);
  EXPECT_FALSE(a.due);
  ASSERT_TRUE(a.winner);
  EXPECT_EQ(a.winner->median_us, 10);
  ASSERT_EQ(a.top.size(), 3u);
  EXPECT_EQ(a.top[0].trial_id, a.winner->trial_id);
  EXPECT_EQ(a.top[0].config, "s=0");
  EXPECT_EQ(a.top[0].median_us, 10);
  EXPECT_EQ(a.top[0].validated_by, ValidatedBy::gpu);
  EXPECT_EQ(a.top[0].tie, (Interval{1, 1}));
  EXPECT_EQ(a.top[1].config, "s=9");
  EXPECT_EQ(a.top[1].tie, (Interval{1.01, 1.01}));
  EXPECT_EQ(a.top[2].config, "s=1");
  EXPECT_FALSE(a.top[2].tie);
  EXPECT_EQ(a.counts, (std::map<Outcome, int64_t>{
                          {Outcome::ok, 6}, {Outcome::wrong_result, 1}, {Outcome::compile_failed, 2}}));
  EXPECT_EQ(best(store_, {.timing = {.regime = Regime::sustained}})[0].winner->median_us, 20);
}

TEST_F(BestTest, TheWinnerComesFirstAlsoWhereItIsNotTheBestMedian) {
  for (const char* config : {"zz=1", "z=1"}) store_.record_trial(ok_trial(problem(), config, {10}), device_);
  int64_t simple = store_.record_trial(ok_trial(problem(), "a=1", {10.03}), device_).id;
  refresh_winners(store_, [](std::string_view, std::string_view c) { return c == "a=1" ? 0 : 1; });
  for (int top : {1, 2}) {
    std::vector<RankedTrial> ranked = best(store_, {.top = top})[0].top;
    EXPECT_EQ(ranked.size(), static_cast<size_t>(top));
    EXPECT_EQ(ranked[0].trial_id, simple);
  }
}

TEST_F(BestTest, WithoutMeasurementsPredictionsRankAndSaySo) {
  int64_t none = store_.device_id(no_device());
  for (int i = 0; i < 3; ++i) {
    Trial trial = failed_trial(problem(), "s=" + std::to_string(i), Outcome::compiled);
    trial.arch = "sm_100a";
    trial.prediction = Prediction{"roofline-1", 30.0 - i, "tensor"};
    store_.record_trial(trial, none);
  }
  Trial rejected = failed_trial(problem(), "s=8", Outcome::rejected_static);
  rejected.prediction = Prediction{"roofline-1", 1, "tensor"};
  store_.record_trial(rejected, none);
  std::vector<BestAnswer> answers = best(store_, {.arch = "sm_100a", .top = 2});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].basis, Basis::predicted);
  EXPECT_FALSE(answers[0].winner);
  ASSERT_EQ(answers[0].top.size(), 2u);
  EXPECT_EQ(answers[0].top[0].config, "s=2");
  EXPECT_FALSE(answers[0].top[0].median_us);
  EXPECT_EQ(answers[0].top[0].predicted_us, 28);
  EXPECT_EQ(answers[0].top[0].bound_by, "tensor");
}

TEST_F(BestTest, FiltersAndUntriedProblems) {
  store_.record_trial(ok_trial(problem(1), "a=1", {10}), device_);
  store_.record_trial(ok_trial(problem(1), "a=1", {11}), store_.device_id(h200("GPU-2")));
  store_.record_trial(ok_trial(problem(2), "a=1", {10}), device_);
  Problem f16{parse_problem_class("f16-f16-kk"), {3, 3, 3}};
  store_.record_trial(ok_trial(f16, "a=1", {10}), device_);
  EXPECT_EQ(best(store_, {}).size(), 4u);
  EXPECT_EQ(best(store_, {.cls = f16.cls}).size(), 1u);
  EXPECT_EQ(best(store_, {.device_uuid = "GPU-2"}).size(), 1u);
  EXPECT_EQ(best(store_, {.device_name = "NVIDIA B200"}).size(), 0u);
  EXPECT_EQ(best(store_, {.arch = "sm_90a"}).size(), 4u);
  std::vector<BestAnswer> answers = best(store_, {.problems = {problem(7), problem(2)}});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].problem, problem(2));
  EXPECT_TRUE(answers[0].due);  // never refreshed: ranked, but no winner is stored
  EXPECT_FALSE(answers[0].winner);
  EXPECT_EQ(answers[0].top.size(), 1u);
  EXPECT_EQ(answers[1].problem, problem(7));
  EXPECT_EQ(answers[1].basis, Basis::none);
  EXPECT_EQ(answers[1].device_id, 0);
}

TEST_F(BestTest, NeverScansTrials) {
  Statement plan(
      store_.connection(),
      "EXPLAIN QUERY PLAN SELECT t.id FROM rankable t WHERE t.problem_id = 1 AND t.device_id = 1 AND "
      "t.regime = 'burst' AND t.protocol = 'p1' AND t.warm = 0 ORDER BY t.finalist DESC, t.median_us, t.id "
      "LIMIT 5");
  std::string text;
  while (plan.step()) text += plan.text(3) + "\n";
  EXPECT_NE(text.find("USING INDEX trial_fastest"), std::string::npos) << text;
  EXPECT_NE(text.find("USING INDEX trial_once"), std::string::npos) << text;
  EXPECT_EQ(text.find("SCAN"), std::string::npos) << text;
  EXPECT_EQ(text.find("TEMP B-TREE"), std::string::npos) << text;
}

/// `trials` rows over `problems` problems: half ok and timed, the rest failed.
void fill(Store& store, int trials, int problems) {
  int64_t device = store.device_id(h200());
  Transaction all(store.connection());
  std::string evidence =
      "'[{\"fill\":\"sharp\",\"shape\":\"64x64x64\",\"elements\":4096,\"mismatches\":0,"
      "\"max_abs_error\":0.0,\"max_error_over_bound\":0.0,\"guards_intact\":true,"
      "\"repeatable\":true,\"first_mismatch\":\"\"}]'";
  std::string count = std::to_string(trials), per = std::to_string(problems);
  store.connection().execute(
      "CREATE TEMP TABLE i AS WITH RECURSIVE s(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM s WHERE x + 1 < " +
      count +
      ") SELECT x FROM s;"
      "INSERT INTO problem (class, m, n, k) SELECT 'bf16-bf16-kk', x + 1, 4096, 8192 FROM i WHERE x < " +
      per +
      ";"
      "INSERT INTO config (family, text, json) SELECT 'sm90_gemm', 'tile_k=64,swizzle_a=128B,stages=' || x, "
      "'{\"stages\":' || x || '}' FROM i WHERE x <= " +
      count + " / " + per +
      ";"
      "INSERT INTO trial (problem_id, device_id, config_id, arch, regime, protocol, warm, outcome, stage, "
      "message, "
      "validated_by, validation, wall_ms) SELECT x % " +
      per + " + 1, 1, x / " + per +
      " + 1, 'sm_90a', "
      "CASE x / " +
      per + " % 2 WHEN 0 THEN 'burst' END, CASE x / " + per +
      " % 2 WHEN 0 THEN 'p1' END, 0, "
      "CASE x / " +
      per + " % 2 WHEN 0 THEN 'ok' ELSE 'wrong_result' END, 'done', '', 'gpu', " + evidence +
      ", 5 FROM i;"
      "INSERT INTO sample SELECT id, j, 100 + (id * 7919 + j) % 1000 / 10.0, 10, 1, 0, 1500000, 700000, 60, "
      "0, '' "
      "FROM trial CROSS JOIN (SELECT 0 AS j UNION ALL SELECT 1 UNION ALL SELECT 2) WHERE regime IS NOT NULL;"
      "UPDATE trial SET median_us = (SELECT avg(time_us) FROM sample WHERE trial_id = trial.id AND idx = 1), "
      "relative_spread = 0.01 WHERE regime IS NOT NULL; DROP TABLE i;");
  all.commit();
  (void)device;
}

/// Prints; asserts no time, because the machine may be busy. GEMMTUNE_DB_ROWS=1000000 is the design's number.
TEST_F(BestTest, TimeOnManyTrials) {
  const char* rows = std::getenv("GEMMTUNE_DB_ROWS");
  int trials = rows ? std::atoi(rows) : 100'000;
  using Clock = std::chrono::steady_clock;
  auto ms_since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  for (int problems : {22, 1000}) {
    std::string file = path(std::to_string(problems) + ".db");
    {
      Store writer(file);
      fill(writer, trials, problems);
      auto start = Clock::now();
      int refreshed = refresh_winners(writer, kEqual);
      printf("  %d trials, %d problems: %.0f ms for %d winners\n", trials, problems, ms_since(start),
             refreshed);
      EXPECT_EQ(refreshed, problems);
    }
    std::vector<double> open, all, one;
    for (int repeat = 0; repeat < 5; ++repeat) {
      auto start = Clock::now();
      Store store(file, OpenMode::read_only);
      open.push_back(ms_since(start));
      start = Clock::now();
      std::vector<BestAnswer> answers = best(store, {.top = 5});
      all.push_back(ms_since(start));
      start = Clock::now();
      EXPECT_EQ(best(store, {.problems = {answers[3].problem}, .top = 5}).size(), 1u);
      one.push_back(ms_since(start));
      ASSERT_EQ(answers.size(), static_cast<size_t>(problems));
      for (const BestAnswer& answer : answers) {
        ASSERT_TRUE(answer.winner);
        EXPECT_EQ(answer.top.size(), 5u);
      }
    }
    for (auto* times : {&open, &all, &one}) std::ranges::sort(*times);
    printf("  open %.1f ms, best of all shapes, top 5: %.1f ms, of one shape: %.1f ms (medians of 5)\n",
           open[2], all[2], one[2]);
  }
}

TEST_F(BestTest, InfoCountsEverything) {
  CompiledKernel k = kernel("key", "a=1");
  store_.put_kernel(k);
  store_.record_trial(ok_trial(problem(), "a=1", {10, 11}), device_);
  store_.record_trial(failed_trial(problem(), "b=1", Outcome::crashed), device_);
  store_.start_sweep("x", 1, "0");
  DatabaseInfo info = database_info(store_);
  EXPECT_EQ(info.trials, 2);
  EXPECT_EQ(info.samples, 2);
  EXPECT_EQ(info.problems, 1);
  EXPECT_EQ(info.devices, 1);
  EXPECT_EQ(info.kernels, 1);
  EXPECT_EQ(info.configs, 2);
  EXPECT_EQ(info.winners, 0);
  EXPECT_EQ(info.winners_due, 1);
  EXPECT_EQ(info.sweeps, 1);
  EXPECT_EQ(info.unfinished_sweeps, 1);
  EXPECT_EQ(info.cubin_bytes, static_cast<int64_t>(k.cubin.size()));
  EXPECT_GT(info.file_bytes, 10'000);
  EXPECT_EQ(info.schema_version, current_schema().version);
  EXPECT_EQ(info.toolchains, std::vector<Toolchain>{k.toolchain});
  EXPECT_EQ(info.outcomes, (std::map<Outcome, int64_t>{{Outcome::ok, 1}, {Outcome::crashed, 1}}));
  EXPECT_FALSE(info.first_trial_at.empty());
}

/// Each kind of damage is found: done with the guards off, as a bug or another tool might.
TEST_F(BestTest, TheCheckFindsWhatIsWrong) {
  store_.record_trial(ok_trial(problem(), "a=1", {10, 11, 12}), device_);
  store_.record_trial(ok_trial(problem(), "b=1", {13, 14, 15, 16}), device_);
  refresh_winners(store_, kEqual);
  ASSERT_TRUE(check_integrity(store_).empty());
  auto found_after = [&](const std::string& damage, const std::string& expected) {
    Connection& c = store_.connection();
    c.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; BEGIN");
    c.execute(damage);
    c.execute("PRAGMA ignore_check_constraints = OFF");
    std::string all;
    for (const std::string& finding : check_integrity(store_)) all += finding + "\n";
    EXPECT_NE(all.find(expected), std::string::npos) << damage << " found:\n" << all;
    c.execute("ROLLBACK; PRAGMA foreign_keys = ON");
  };
  found_after("UPDATE sample SET time_us = 99 WHERE trial_id = 1", "trial 1: the stored median");
  found_after("UPDATE trial SET finalist = 1 WHERE id = 2", "trial 2: its mark as a finalist");
  found_after("UPDATE trial SET median_us = NULL WHERE id = 2",
              "trial 2: has samples that count but no median");
  found_after("DELETE FROM device", "refers to a missing row of device");
  found_after("UPDATE device SET name = 'emulator'", "trial 1: a measured time on a device that has none");
  found_after("DELETE FROM winner_tie", "winner 1: its trial is not in its own tie set");
  found_after(
      "UPDATE sample SET time_us = 1 WHERE trial_id = 2; UPDATE trial SET median_us = 1 WHERE id = 2;"
      "DELETE FROM winner_due",
      "winner 1: a rankable trial is faster");
  found_after("UPDATE outcome_count SET trials = 7", "problem 1: kept outcome counts");
  found_after("DELETE FROM outcome_count", "problem 1: kept outcome counts");
  found_after("DROP TRIGGER trial_dethroned; UPDATE trial SET outcome = 'crashed' WHERE id = 1",
              "winner 1: its trial is not ok");
  found_after("UPDATE trial SET validation = '[]' WHERE id = 2", "trial 2: ok, but its evidence");
  found_after("UPDATE trial SET validation = '[{}]' WHERE id = 2",
              "trial 2: validation evidence in the database is damaged");
  found_after("UPDATE trial SET outcome = 'fine' WHERE id = 2", "CHECK constraint failed");
  EXPECT_TRUE(check_integrity(store_).empty());
}

}  // namespace
}  // namespace gemmtune
