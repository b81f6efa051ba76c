// What goes in comes out: every field of every record; resuming; the cubin cache.
#include "db/store.h"

#include <cmath>
#include <limits>

#include "db/check.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expect_equal(const ValidationCase& a, const ValidationCase& b) {
  EXPECT_EQ(a.fill, b.fill);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.elements, b.elements);
  EXPECT_EQ(a.mismatches, b.mismatches);
  EXPECT_TRUE(a.max_abs_error == b.max_abs_error ||
              (std::isnan(a.max_abs_error) && std::isnan(b.max_abs_error)));
  EXPECT_EQ(a.max_error_over_bound, b.max_error_over_bound);
  EXPECT_EQ(a.guards_intact, b.guards_intact);
  EXPECT_EQ(a.repeatable, b.repeatable);
  EXPECT_EQ(a.first_mismatch, b.first_mismatch);
}

void expect_equal(const Trial& a, const Trial& b) {
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.arch, b.arch);
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.kernel_key, b.kernel_key);
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.message, b.message);
  EXPECT_EQ(a.validation.by, b.validation.by);
  ASSERT_EQ(a.validation.cases.size(), b.validation.cases.size());
  for (size_t i = 0; i < a.validation.cases.size(); ++i)
    expect_equal(a.validation.cases[i], b.validation.cases[i]);
  ASSERT_EQ(a.measurement.has_value(), b.measurement.has_value());
  if (a.measurement) {
    EXPECT_EQ(a.measurement->protocol, b.measurement->protocol);
    EXPECT_EQ(a.measurement->regime, b.measurement->regime);
    EXPECT_EQ(a.measurement->warm_l2, b.measurement->warm_l2);
    ASSERT_EQ(a.measurement->samples.size(), b.measurement->samples.size());
    for (size_t i = 0; i < a.measurement->samples.size(); ++i) {
      const Sample &x = a.measurement->samples[i], &y = b.measurement->samples[i];
      EXPECT_EQ(x.time_us, y.time_us);
      EXPECT_EQ(x.launches, y.launches);
      EXPECT_EQ(x.round, y.round);
      EXPECT_EQ(x.final_round, y.final_round);
      EXPECT_EQ(x.sm_clock_khz, y.sm_clock_khz);
      EXPECT_EQ(x.power_mw, y.power_mw);
      EXPECT_EQ(x.temperature_c, y.temperature_c);
      EXPECT_EQ(x.event_reasons, y.event_reasons);
    }
  }
  ASSERT_EQ(a.prediction.has_value(), b.prediction.has_value());
  if (a.prediction) {
    EXPECT_EQ(a.prediction->model, b.prediction->model);
    EXPECT_EQ(a.prediction->time_us, b.prediction->time_us);
    EXPECT_EQ(a.prediction->bound_by, b.prediction->bound_by);
  }
  EXPECT_EQ(a.wall_ms, b.wall_ms);
}

/// No field at its default.
Trial full_trial(Outcome outcome) {
  Trial t;
  t.problem = {parse_problem_class("f16-f32-mn-beta"), {2147483647, 3, 5}};
  t.family = "sm100_gemm";
  t.arch = "sm_100a";
  t.config = "stages=4,swizzle_a=128B";
  t.kernel_key = "key";
  t.outcome = outcome;
  t.stage = "validate";
  t.message = "say \"no\"\n\xff, \xe2\x82\xac; DROP TABLE trial";
  t.message.push_back('\0');
  t.message += "behind";
  t.validation = {
      ValidatedBy::emulator,
      {{Fill::sharp, {64, 64, 64}, 4096, 0, 0.1, 0, true, true, ""},
       {Fill::rounding, {1, 2, 3}, 6, 0, 0, 0, true, true, ""},
       {Fill::normal, {65, 66, 67}, int64_t{1} << 40, 0, 1e-300, 0.123456789012345678, true, true, "r"}}};
  if (outcome == Outcome::wrong_result)
    t.validation.cases = {
        {Fill::normal, {1, 1, 1}, 9, 8, kNan, kInf, false, false, "row 3, column 9: got nan, want 2"}};
  t.measurement = Measurement{"p2", Regime::sustained, true, {}};
  t.measurement->samples = {{0.1 + 0.2, 7, 3, true, 1, 2, 3, 0xffff'ffff'ffff'fff0},
                            {1e11, 1, 2, false, 3, 4, 5, 6}};
  t.prediction = Prediction{"roofline-1", 1.0 / 3.0, "tensor"};
  t.wall_ms = 123.456;
  return t;
}

class StoreTest : public DbTest {
 protected:
  StoreTest() : store_(path()), device_(store_.device_id(h200())) {}
  Store store_;
  int64_t device_;
  const Timing burst_;
};

TEST_F(StoreTest, RoundTripsEveryFieldAndOutcome) {
  CompiledKernel k = kernel("key", "stages=4");
  store_.put_kernel(k);
  int64_t sweep = store_.start_sweep("gemmtune sweep", ~uint64_t{0}, "0.1.0");
  for (Outcome outcome : kAllOutcomes) {
    SCOPED_TRACE(name(outcome));
    Trial trial = full_trial(outcome);
    trial.config += ",k=" + std::string(name(outcome));
    Store::Recorded recorded = store_.record_trial(trial, device_, sweep);
    EXPECT_TRUE(recorded.inserted);
    Store reader(path(), OpenMode::read_only);
    std::optional<StoredTrial> stored = reader.trial(recorded.id);
    ASSERT_TRUE(stored);
    expect_equal(trial, stored->trial);
    EXPECT_EQ(stored->device_id, device_);
    EXPECT_EQ(stored->sweep_id, sweep);
    EXPECT_EQ(stored->created_at.size(), 24u);
    EXPECT_EQ(stored->created_at.back(), 'Z');
  }
  EXPECT_EQ(store_.trials({}).size(), std::size(kAllOutcomes));
}

TEST_F(StoreTest, AbsentPartsStayAbsent) {
  Trial trial = failed_trial(problem(), "stages=4", Outcome::compile_failed);
  Trial empty_measurement = ok_trial(problem(), "stages=5", {});
  int64_t id = store_.record_trial(trial, device_).id,
          timed = store_.record_trial(empty_measurement, device_).id;
  expect_equal(trial, store_.trial(id)->trial);
  expect_equal(empty_measurement, store_.trial(timed)->trial);  // timing was reached, no sample came out
  Statement row(store_.connection(),
                "SELECT count(*) FROM trial WHERE median_us IS NULL AND predicted_us IS NULL");
  ASSERT_TRUE(row.step());
  EXPECT_EQ(row.integer(0), 2);
  EXPECT_FALSE(store_.trial(99));
}

TEST_F(StoreTest, NaNAndInfinityAreNeverTimes) {
  for (double bad : {kNan, kInf, -kInf, 0.0, -1.0}) {
    SCOPED_TRACE(bad);
    EXPECT_THROW(store_.record_trial(ok_trial(problem(), "stages=4", {10, bad}), device_),
                 std::invalid_argument);
    Trial predicted = failed_trial(problem(), "stages=4", Outcome::compiled);
    predicted.prediction = Prediction{"m", bad, "dram"};
    EXPECT_THROW(store_.record_trial(predicted, device_), std::invalid_argument);
  }
  EXPECT_THROW(Statement(store_.connection(), "SELECT ?").bind(kNan), std::invalid_argument);
  EXPECT_TRUE(store_.trials({}).empty());
}

TEST_F(StoreTest, RefusesRecordsThatContradictThemselves) {
  Trial unvalidated = ok_trial(problem(), "stages=4", {10});
  unvalidated.validation.cases[0].mismatches = 1;
  EXPECT_THROW(store_.record_trial(unvalidated, device_), std::invalid_argument);
  Trial unknown = ok_trial(problem(), "stages=4", {10});
  unknown.kernel_key = "never stored";
  EXPECT_THROW(store_.record_trial(unknown, device_), std::invalid_argument);
  EXPECT_TRUE(store_.trials({}).empty());
}

TEST_F(StoreTest, NoTrialTwice) {
  Trial trial = ok_trial(problem(), "stages=4", {10, 11});
  int64_t id = store_.record_trial(trial, device_).id;
  trial.measurement->samples.resize(1);
  Store::Recorded again = store_.record_trial(trial, device_);
  EXPECT_EQ(again.id, id);
  EXPECT_FALSE(again.inserted);
  EXPECT_EQ(store_.trial(id)->trial.measurement->samples.size(), 2u);
}

TEST_F(StoreTest, EveryPartOfTheKeyMakesAnotherTrial) {
  store_.put_kernel(kernel("key-1", "stages=4"));
  store_.put_kernel(kernel("key-2", "stages=4"));
  Trial base = ok_trial(problem(), "stages=4", {10});
  base.kernel_key = "key-1";
  std::vector<Trial> trials(9, base);
  trials[1].problem.shape.k += 1;
  trials[2].problem.cls.beta = true;
  trials[3].arch = "sm_100a";
  trials[4].family = "other";
  trials[5].config = "stages=5";
  trials[6].measurement->regime = Regime::sustained;
  trials[7].measurement->warm_l2 = true;
  trials[8].kernel_key = "key-2";
  Trial protocol = base;
  protocol.measurement->protocol = "p2";
  trials.push_back(protocol);
  Trial without_kernel = base;
  without_kernel.kernel_key.clear();
  trials.push_back(without_kernel);
  for (const Trial& trial : trials) EXPECT_TRUE(store_.record_trial(trial, device_).inserted);
  EXPECT_TRUE(store_.record_trial(base, store_.device_id(h200("GPU-2"))).inserted);
  DeviceRecord new_driver = h200();
  new_driver.driver_version = "590";
  EXPECT_TRUE(store_.record_trial(base, store_.device_id(new_driver)).inserted);
  for (const Trial& trial : trials) EXPECT_FALSE(store_.record_trial(trial, device_).inserted);
}

TEST_F(StoreTest, ResumeSkipsWhatIsFinished) {
  store_.put_kernel(kernel("new", "stages=4"));
  store_.record_trial(ok_trial(problem(), "stages=4", {10}), device_);
  store_.record_trial(failed_trial(problem(), "stages=5", Outcome::compile_failed), device_);
  store_.record_trial(failed_trial(problem(), "stages=6", Outcome::compiled), device_);
  auto finished = [&](const std::optional<Timing>& timing, const std::string& config,
                      const std::string& key = "") {
    VariantKey variant{"sm_90a", "sm90_gemm", config, key};
    bool has = store_.has_trial(problem(), device_, timing, variant);
    EXPECT_EQ(store_.finished_trials(problem(), device_, timing).contains(variant), has);
    return has;
  };
  EXPECT_TRUE(finished(burst_, "stages=4"));
  EXPECT_FALSE(finished(burst_, "stages=4", "new"));                        // another kernel now
  EXPECT_FALSE(finished(Timing{.regime = Regime::sustained}, "stages=4"));  // not timed so
  EXPECT_FALSE(finished(Timing{.protocol = "p2"}, "stages=4"));
  EXPECT_FALSE(finished(Timing{.warm_l2 = true}, "stages=4"));
  EXPECT_TRUE(finished(burst_, "stages=5"));  // no timing will change that
  EXPECT_TRUE(finished(Timing{.regime = Regime::sustained}, "stages=5"));
  EXPECT_FALSE(finished(burst_, "stages=6"));  // compiled, to be timed
  EXPECT_TRUE(finished(std::nullopt, "stages=6"));
  EXPECT_TRUE(finished(std::nullopt, "stages=4"));
  EXPECT_FALSE(finished(std::nullopt, "stages=7"));
  EXPECT_TRUE(store_.finished_trials(problem(1), device_, burst_).empty());
  EXPECT_TRUE(store_.finished_trials(problem(), store_.device_id(no_device()), std::nullopt).empty());
}

TEST_F(StoreTest, FiltersTrials) {
  int64_t sweep = store_.start_sweep("x", 1, "0");
  store_.record_trial(ok_trial(problem(), "stages=4", {10}), device_, sweep);
  store_.record_trial(failed_trial(problem(1), "stages=5", Outcome::crashed), device_);
  EXPECT_EQ(store_.trials({.problem = problem()}).size(), 1u);
  EXPECT_EQ(store_.trials({.problem = problem(9)}).size(), 0u);
  EXPECT_EQ(store_.trials({.arch = "sm_90a", .device_id = device_}).size(), 2u);
  EXPECT_EQ(store_.trials({.arch = "sm_100a"}).size(), 0u);
  EXPECT_EQ(store_.trials({.outcome = Outcome::crashed}).size(), 1u);
  EXPECT_EQ(store_.trials({.timing = Timing{}}).size(), 1u);
  EXPECT_EQ(store_.trials({.sweep_id = sweep}).size(), 1u);
}

TEST_F(StoreTest, AppendedSamplesMoveTheMedian) {
  int64_t id = store_.record_trial(ok_trial(problem(), "stages=4", {10}), device_).id;
  std::vector<Sample> more = {{20, 1, 2, false, 3, 4, 5, 6}, {30, 1, 2, false, 3, 4, 5, 6}};
  store_.append_samples(id, more);
  EXPECT_EQ(store_.trial(id)->trial.measurement->samples.size(), 3u);
  EXPECT_EQ(query_integer(store_.connection(), "SELECT median_us = 20 AND relative_spread = 0.5 FROM trial"),
            1);
  // Final rounds count alone.
  std::vector<Sample> final_samples = {{50, 1, 3, true, 3, 4, 5, 6}};
  store_.append_samples(id, final_samples);
  EXPECT_EQ(query_integer(store_.connection(), "SELECT median_us = 50 AND finalist FROM trial"), 1);
  more[0].time_us = kNan;
  EXPECT_THROW(store_.append_samples(id, more), std::invalid_argument);
  int64_t untimed = store_.record_trial(failed_trial(problem(), "x=1", Outcome::crashed), device_).id;
  more[0].time_us = 1;
  EXPECT_THROW(store_.append_samples(untimed, more), std::invalid_argument);
  EXPECT_TRUE(check_integrity(store_).empty());
}

TEST_F(StoreTest, KernelsRoundTripAndDamagedOnesAreMisses) {
  CompiledKernel k = kernel("abc", "stages=4,swizzle_a=128B");
  EXPECT_FALSE(store_.find_kernel("abc"));
  store_.put_kernel(k);
  std::optional<CompiledKernel> found = store_.find_kernel("abc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, k.key);
  EXPECT_EQ(found->family, k.family);
  EXPECT_EQ(found->arch, k.arch);
  EXPECT_EQ(found->problem_class, k.problem_class);
  EXPECT_EQ(found->config, k.config);
  EXPECT_EQ(found->toolchain, k.toolchain);
  EXPECT_TRUE(found->ok);
  EXPECT_EQ(found->cubin, k.cubin);
  const StaticEvidence &a = found->evidence, &b = k.evidence;
  EXPECT_EQ(std::tie(a.registers, a.spill_store_bytes, a.spill_load_bytes, a.stack_bytes, a.static_smem_bytes,
                     a.dynamic_smem_bytes, a.tmem_columns),
            std::tie(b.registers, b.spill_store_bytes, b.spill_load_bytes, b.stack_bytes, b.static_smem_bytes,
                     b.dynamic_smem_bytes, b.tmem_columns));
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(found->compile_ms, k.compile_ms);
  EXPECT_EQ(found->log, k.log);
  EXPECT_EQ(found->ptx, "");
  EXPECT_TRUE(store_.has_kernel("abc", false));
  EXPECT_FALSE(store_.has_kernel("abc", true));
  EXPECT_FALSE(store_.has_kernel("abd", false));
  k.ptx = ".version 9.0\n";
  store_.put_kernel(k);
  EXPECT_TRUE(store_.has_kernel("abc", true));
  EXPECT_EQ(store_.find_kernel("abc")->ptx, k.ptx);

  store_.connection().execute("UPDATE kernel SET cubin = x'00'");
  EXPECT_FALSE(store_.find_kernel("abc"));
  EXPECT_EQ(check_integrity(store_).size(), 1u);
  store_.put_kernel(k);  // compiled again: heals, and keeps the row's id
  EXPECT_TRUE(store_.find_kernel("abc"));
  store_.connection().execute("UPDATE kernel SET cubin = NULL, cubin_sha256 = NULL");
  EXPECT_FALSE(store_.find_kernel("abc"));  // pruned
  EXPECT_FALSE(store_.has_kernel("abc", false));
}

TEST_F(StoreTest, FailedCompilationsAreRemembered) {
  CompiledKernel k = kernel("abc", "stages=4");
  k.ok = false;
  k.cubin.clear();
  k.log = "error: no such instruction";
  store_.put_kernel(k);
  std::optional<CompiledKernel> found = store_.find_kernel("abc");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->ok);
  EXPECT_EQ(found->log, k.log);
  EXPECT_TRUE(store_.has_kernel("abc", true));  // nothing to run, nothing to compile again
}

TEST_F(StoreTest, DevicesAndSweeps) {
  EXPECT_EQ(store_.device_id(h200()), device_);
  DeviceRecord other_clock = h200();
  other_clock.max_sm_clock_khz = 1;
  EXPECT_EQ(store_.device_id(other_clock), device_);
  EXPECT_EQ(store_.device(device_).max_sm_clock_khz, 1);
  EXPECT_NE(store_.device_id(no_device("sm_100a")), store_.device_id(no_device("sm_103a")));
  EXPECT_THROW(store_.device(99), std::invalid_argument);
  int64_t sweep = store_.start_sweep("gemmtune sweep --seed 1", ~uint64_t{0}, "0.1.0");
  Statement row(store_.connection(), "SELECT seed, finished_at FROM sweep WHERE id = ?");
  ASSERT_TRUE(row.bind(sweep).step());
  EXPECT_EQ(static_cast<uint64_t>(row.integer(0)), ~uint64_t{0});
  EXPECT_TRUE(row.is_null(1));
  store_.finish_sweep(sweep);
  ASSERT_TRUE(row.bind(sweep).step());
  EXPECT_FALSE(row.is_null(1));
}

}  // namespace
}  // namespace gemmtune
