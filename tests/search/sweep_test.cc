// The sweep against recording fakes: no CUDA, no database.
#include "search/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "search/launch_cost.h"
#include "search/stopping.h"

namespace gemmtune {
namespace {

struct FakeCompiler : Compiler {
  std::vector<std::string> submitted;
  std::set<std::string> spills, broken;  ///< by substring of the source
  std::map<std::string, CompileResult> results;

  Toolchain toolchain() const override { return {"fake", "1"}; }
  void submit(CompileRequest request) override {
    submitted.push_back(request.key);
    CompileResult result;
    result.key = request.key;
    result.ok = true;
    result.cubin = "cubin";
    result.ptx = "ptx";
    result.evidence.registers = 64;
    for (const std::string& text : spills)
      if (request.source.find(text) != std::string::npos) result.evidence.spill_store_bytes = 4;
    for (const std::string& text : broken)
      if (request.source.find(text) != std::string::npos) result.ok = false, result.log = "boom";
    results[request.key] = result;
  }
  CompileResult take(const std::string& key) override { return results.at(key); }
  bool poll(std::chrono::milliseconds) override { return false; }
};

struct FakeExecutor : Executor {
  std::map<int, std::string> loaded;
  std::set<std::string> wrong, hangs_in_timing;  ///< by substring of the config
  int begun = 0, validated = 0, samples = 0;
  int die_after_samples = 1 << 30;
  std::map<Regime, std::vector<std::string>> order;  ///< who was sampled
  std::set<bool> warmths;
  std::function<SampleMark()> mark = [] { return SampleMark::none; };
  int graphs = 0;
  double graph_us = 0;

  static bool any(const std::set<std::string>& set, const std::string& config) {
    for (const std::string& text : set)
      if (config.find(text) != std::string::npos) return true;
    return false;
  }
  DeviceRecord device() const override { return {"GPU-fake", "NVIDIA H200", "sm_90a", 132, 60 << 20, 0, ""}; }
  StepResult begin_problem(const Problem&, float, float) override {
    ++begun;
    loaded.clear();
    return {};
  }
  StepResult prepare(int handle, const Variant& v, const CompiledKernel&) override {
    loaded[handle] = to_text(v.family->knobs(), v.config);
    return {};
  }
  ValidationResult validate(int handle) override {
    ++validated;
    ValidationResult result;
    result.validation.by = ValidatedBy::gpu;
    result.validation.cases.push_back({});
    if (any(wrong, loaded.at(handle))) {
      result.outcome = Outcome::wrong_result;
      result.validation.cases[0].mismatches = 1;
    }
    return result;
  }
  GraphResult sample_graph(int handle, bool) override {
    ++graphs;
    GraphResult result;
    result.plain_us = 10;
    result.graph_us = loaded.contains(handle) ? graph_us : -1;
    return result;
  }
  SampleResult sample(int handle, Regime regime, bool warm_l2) override {
    order[regime].push_back(loaded.at(handle));
    warmths.insert(warm_l2);
    if (++samples > die_after_samples) throw std::runtime_error("power cut");
    SampleResult result;
    if (any(hangs_in_timing, loaded.at(handle))) {
      result.outcome = Outcome::timed_out;
      return result;
    }
    // More stages, faster: the winner is known.
    result.sample.time_us = loaded.at(handle).find("stages=4") != std::string::npos ? 10 : 10.3;
    result.sample.launches = 1;
    result.sample.mark = mark();
    return result;
  }
};

/// Proves, but has no clock.
struct FakeEmulator : FakeExecutor {
  bool takes_times() const override { return false; }
  bool runs_ptx() const override { return true; }
  StepResult prepare(int handle, const Variant& v, const CompiledKernel& kernel) override {
    EXPECT_EQ(kernel.ptx, "ptx");
    return FakeExecutor::prepare(handle, v, kernel);
  }
};

struct FakeJournal : Journal {
  std::map<std::string, CompiledKernel> kernels;
  std::vector<Trial> trials;
  std::set<std::string> damaged;  ///< a miss, once

  bool has_kernel(const std::string& key, bool with_ptx) override {
    auto found = kernels.find(key);
    return found != kernels.end() && (!with_ptx || !found->second.ptx.empty());
  }
  std::optional<CompiledKernel> find_kernel(const std::string& key) override {
    if (damaged.erase(key)) return std::nullopt;
    auto found = kernels.find(key);
    return found == kernels.end() ? std::nullopt : std::optional(found->second);
  }
  void put_kernel(const CompiledKernel& kernel) override { kernels[kernel.key] = kernel; }
  std::vector<Known> known_trials(const Problem& problem, const Timing& timing) override {
    std::vector<Known> known;
    for (size_t i = 0; i < trials.size(); ++i) {
      const std::optional<Measurement>& m = trials[i].measurement;
      if (trials[i].problem != problem || (m && (m->regime != timing.regime || m->warm_l2 != timing.warm_l2)))
        continue;
      known.push_back({static_cast<int64_t>(i), trials[i].config, trials[i].kernel_key, trials[i].outcome,
                       m ? m->samples : SampleList(), trials[i].validation,
                       launch_costs.contains(static_cast<int64_t>(i))});
    }
    return known;
  }
  std::optional<Incumbent> stored_winner;
  std::map<int64_t, LaunchCost> launch_costs;
  std::optional<Incumbent> incumbent(const Problem&, const Timing&) override { return stored_winner; }
  void put_launch_cost(int64_t id, const LaunchCost& cost) override { launch_costs[id] = cost; }
  using SampleList = std::vector<Sample>;
  int64_t record(const Trial& trial) override {
    trials.push_back(trial);
    return static_cast<int64_t>(trials.size()) - 1;
  }
  void append_sample(int64_t id, const Sample& sample) override {
    trials[static_cast<size_t>(id)].measurement->samples.push_back(sample);
  }
  void fail(int64_t id, Outcome outcome, const std::string&) override {
    trials[static_cast<size_t>(id)].outcome = outcome;
  }
  std::optional<double> settle(const Problem& problem, const Timing& timing) override {
    std::optional<double> best;
    for (const Trial& trial : trials)
      if (trial.problem == problem && trial.outcome == Outcome::ok && trial.measurement &&
          trial.measurement->regime == timing.regime && trial.measurement->median_us() > 0 &&
          (!best || trial.measurement->median_us() < *best))
        best = trial.measurement->median_us();
    return best;
  }
};

struct SweepTest : testing::Test {
  SweepOptions options;
  FakeCompiler compiler;
  FakeExecutor executor;
  FakeJournal journal;
  SweepObserver observer;
  std::atomic<bool> stop{false};

  SweepTest() {
    options.arch = &find_arch("sm_90a");
    options.family = &family_for(*options.arch);
    options.shapes = {{{256, 256, 256}, "", 1}, {{512, 256, 256}, "", 1}};
    options.strategy = &find_strategy("exhaustive");
    for (std::string_view text : {"tile_k=64", "swizzle=128B", "tile_m=128", "tile_n=128", "consumers=2",
                                  "cluster_m=1", "cluster_n=1", "persistent=no", "raster=m", "stages=2,3,4",
                                  "raster_group=1,8", "prefetch=0", "l2_a=normal", "l2_b=normal", "pdl=no"})
      add_restriction(*options.family, text, options.restrictions);
  }
  SweepSummary run(Executor* device) { return run_sweep(options, compiler, device, journal, observer, stop); }
};

TEST_F(SweepTest, CompilesEachKernelOnceAndRunsItForEveryShape) {
  SweepSummary s = run(&executor);
  EXPECT_EQ(compiler.submitted.size(), 3u);  // stages=2,3,4; raster_group is a launch parameter
  EXPECT_EQ(s.outcomes[Outcome::ok], 12);    // 6 configs x 2 shapes
  EXPECT_EQ(journal.trials.size(), 12u);
  EXPECT_TRUE(s.without_winner.empty());
  EXPECT_EQ(executor.begun, 2);
}

TEST_F(SweepTest, SecondRunDoesNothingAgain) {
  run(&executor);
  int samples = executor.samples, validated = executor.validated;
  FakeCompiler fresh;
  SweepSummary s = run_sweep(options, fresh, &executor, journal, observer, stop);
  EXPECT_TRUE(fresh.submitted.empty());
  EXPECT_EQ(executor.samples, samples);
  EXPECT_EQ(executor.validated, validated);
  EXPECT_EQ(s.trials_resumed, 12);
  EXPECT_EQ(journal.trials.size(), 12u);
}

TEST_F(SweepTest, DyingMidwayLosesNothingAndResumesWithoutRepeating) {
  executor.die_after_samples = 20;
  EXPECT_THROW(run(&executor), std::runtime_error);
  size_t stored = 0;
  for (const Trial& trial : journal.trials) stored += trial.measurement->samples.size();
  EXPECT_EQ(stored, 20u);
  int validated = executor.validated;
  EXPECT_EQ(validated, 6);
  executor.die_after_samples = 1 << 30;
  run(&executor);
  EXPECT_EQ(executor.validated, 12);  // the six of the first shape are not validated again
  EXPECT_EQ(journal.trials.size(), 12u);

  FakeJournal undisturbed;
  FakeExecutor again;
  run_sweep(options, compiler, &again, undisturbed, observer, stop);
  for (size_t i = 0; i < 12; ++i)
    EXPECT_EQ(journal.trials[i].measurement->samples.size(),
              undisturbed.trials[i].measurement->samples.size());
}

TEST_F(SweepTest, AFailureCostsItsOwnRowOnly) {
  compiler.broken = {"stages = 2;"};
  compiler.spills = {"stages = 3;"};
  executor.hangs_in_timing = {"raster_group=1"};
  SweepSummary s = run(&executor);
  EXPECT_EQ(s.outcomes[Outcome::compile_failed], 4);
  EXPECT_EQ(s.outcomes[Outcome::rejected_static], 4);
  EXPECT_EQ(s.outcomes[Outcome::timed_out], 2);
  EXPECT_EQ(s.outcomes[Outcome::ok], 2);
  EXPECT_TRUE(s.without_winner.empty());
  for (const Trial& trial : journal.trials)
    if (trial.outcome == Outcome::compile_failed) {
      EXPECT_EQ(trial.message, "boom");
    }
}

TEST_F(SweepTest, AKernelThatFailedIsNotCompiledAgain) {
  compiler.broken = {"stages = 2;"};
  run(&executor);
  FakeCompiler fresh;
  SweepSummary s = run_sweep(options, fresh, &executor, journal, observer, stop);
  EXPECT_TRUE(fresh.submitted.empty());
  EXPECT_EQ(s.outcomes[Outcome::compile_failed], 4);
  options.shapes = {{{1024, 256, 256}, "", 1}};  // a new shape: new rows, the same failure
  s = run_sweep(options, fresh, &executor, journal, observer, stop);
  EXPECT_TRUE(fresh.submitted.empty());
  EXPECT_EQ(s.outcomes[Outcome::compile_failed], 2);
}

TEST_F(SweepTest, WrongResultsNeverWin) {
  executor.wrong = {"stages"};
  SweepSummary s = run(&executor);
  EXPECT_EQ(s.outcomes[Outcome::wrong_result], 12);
  EXPECT_EQ(s.without_winner.size(), 2u);
  EXPECT_EQ(executor.samples, 0);
}

TEST_F(SweepTest, WithoutADeviceNothingIsTimedOrWon) {
  SweepSummary s = run(nullptr);
  EXPECT_EQ(s.outcomes[Outcome::compiled], 12);
  for (const Trial& trial : journal.trials) EXPECT_FALSE(trial.measurement.has_value());
}

TEST_F(SweepTest, AnEmulatorProvesAndTakesNoTimes) {
  FakeEmulator emulator;
  emulator.wrong = {"stages=3"};
  SweepSummary s = run(&emulator);
  EXPECT_EQ(s.outcomes[Outcome::ok], 8);
  EXPECT_EQ(s.outcomes[Outcome::wrong_result], 4);
  EXPECT_EQ(emulator.validated, 12);
  EXPECT_EQ(emulator.samples, 0);
  EXPECT_TRUE(s.without_winner.empty());
  for (const Trial& trial : journal.trials) EXPECT_FALSE(trial.measurement.has_value());
  s = run(&emulator);
  EXPECT_EQ(s.trials_resumed, 12);
  EXPECT_EQ(emulator.validated, 12);
}

TEST_F(SweepTest, KernelsStoredWithoutPtxAreCompiledAgainForTheEmulator) {
  run(nullptr);
  for (auto& [key, kernel] : journal.kernels) kernel.ptx.clear();
  journal.trials.clear();
  FakeCompiler fresh;
  run_sweep(options, fresh, nullptr, journal, observer, stop);
  EXPECT_TRUE(fresh.submitted.empty());
  journal.trials.clear();
  FakeEmulator emulator;
  run_sweep(options, fresh, &emulator, journal, observer, stop);
  EXPECT_EQ(fresh.submitted.size(), 3u);
}

TEST_F(SweepTest, ADamagedKernelIsCompiledAgainWhenItIsWanted) {
  run(nullptr);
  journal.trials.clear();
  journal.damaged = {journal.kernels.begin()->first};
  FakeCompiler fresh;
  SweepSummary s = run_sweep(options, fresh, &executor, journal, observer, stop);
  EXPECT_EQ(fresh.submitted.size(), 1u);
  EXPECT_EQ(s.outcomes[Outcome::ok], 12);
}

TEST_F(SweepTest, AShapeWithoutLegalConfigIsSkippedWithItsReason) {
  options.shapes.push_back({{128, 128, 100}, "", 1});
  SweepSummary s = run(&executor);
  ASSERT_EQ(s.skipped.size(), 1u);
  EXPECT_EQ(s.skipped[0].substr(0, 40), "128x128x100: no legal configuration (K =");
}

TEST_F(SweepTest, SustainedMeasuresTheFinalistsOfTheBurstBesideTheFastest) {
  options.shapes.resize(1);
  options.regime = Regime::sustained;
  SweepSummary s = run(&executor);
  EXPECT_TRUE(s.without_winner.empty());
  size_t burst = 0, sustained = 0;
  for (const Trial& trial : journal.trials) {
    ++(trial.measurement->regime == Regime::burst ? burst : sustained);
    if (trial.measurement->regime == Regime::burst) continue;
    EXPECT_TRUE(trial.validation.passed());
    for (const Sample& sample : trial.measurement->samples) EXPECT_TRUE(sample.final_round);
  }
  EXPECT_EQ(burst, 6u);
  EXPECT_EQ(sustained, kMaxSustained);
  // Blocks come in pairs, and the fastest of the burst is in each.
  const std::vector<std::string>& order = executor.order[Regime::sustained];
  ASSERT_EQ(order.size(), 2 * kSustainedRounds * (kMaxSustained - 1));
  std::map<std::string, int> count;
  for (const std::string& config : order) ++count[config];
  auto reference = std::ranges::max_element(count, {}, [](const auto& c) { return c.second; })->first;
  EXPECT_NE(reference.find("stages=4"), std::string::npos);
  for (size_t i = 0; i < order.size(); i += 2)
    EXPECT_EQ((order[i] == reference) + (order[i + 1] == reference), 1) << i;
  int samples = executor.samples;
  run(&executor);
  EXPECT_EQ(executor.samples, samples) << "all of it is known";
}

TEST_F(SweepTest, WarmIsAskedForAndRecorded) {
  options.warm_l2 = true;
  run(&executor);
  EXPECT_EQ(executor.warmths, (std::set<bool>{true}));
  for (const Trial& trial : journal.trials) EXPECT_TRUE(trial.measurement->warm_l2);
  options.warm_l2 = false;
  run(&executor);
  EXPECT_EQ(journal.trials.size(), 24u) << "cold times are no warm ones";
}

TEST_F(SweepTest, MarkedSamplesAreStoredAndTakenAgain) {
  options.shapes.resize(1);
  options.repeat_pause = std::chrono::milliseconds(0);
  int taken = 0;
  executor.mark = [&] { return ++taken % 5 == 0 ? SampleMark::throttled : SampleMark::none; };
  SweepSummary s = run(&executor);
  EXPECT_EQ(s.marked[SampleMark::throttled], executor.samples / 5);
  EXPECT_TRUE(s.disturbed.empty());
  EXPECT_TRUE(s.without_winner.empty());
  int stored = 0, counted = 0;
  for (const Trial& trial : journal.trials) {
    stored += static_cast<int>(trial.measurement->samples.size());
    for (const Sample& sample : trial.measurement->samples) counted += sample.mark == SampleMark::none;
    std::set<int> rounds;
    for (const Sample& sample : trial.measurement->samples)
      if (sample.mark == SampleMark::none) {
        EXPECT_TRUE(rounds.insert(sample.round).second);
      }
  }
  EXPECT_EQ(stored, executor.samples);
  EXPECT_EQ(counted, executor.samples - executor.samples / 5);
}

TEST_F(SweepTest, WhereNoRepetitionHelpsTheShapeIsGivenUpAndLaterResumed) {
  options.repeat_pause = std::chrono::milliseconds(0);
  executor.mark = [] { return SampleMark::contended; };
  SweepSummary s = run(&executor);
  EXPECT_EQ(s.disturbed.size(), 2u);
  EXPECT_EQ(s.without_winner.size(), 2u);
  EXPECT_EQ(executor.samples, 18);
  executor.mark = [] { return SampleMark::none; };
  s = run(&executor);
  EXPECT_TRUE(s.disturbed.empty());
  EXPECT_TRUE(s.without_winner.empty());
  EXPECT_EQ(executor.validated, 12) << "nothing is validated again";
}

TEST_F(SweepTest, TheIncumbentMeetsItsChallengers) {
  options.shapes.resize(1);
  Config config = parse_config(options.family->knobs(), "tile_n=256");
  journal.stored_winner = {std::string(options.family->name()), to_text(options.family->knobs(), config)};
  run(&executor);
  EXPECT_EQ(journal.trials.size(), 7u);
  EXPECT_EQ(journal.trials.back().config, journal.stored_winner->config);
  journal.stored_winner->config = "no_such_knob=1";
  run(&executor);
  EXPECT_EQ(journal.trials.size(), 7u);
}

TEST_F(SweepTest, ShortLaunchesAreComparedWithAGraphOnce) {
  options.shapes.resize(1);
  executor.graph_us = 5;
  run(&executor);
  EXPECT_EQ(journal.launch_costs.size(), kMaxSustained);
  for (const auto& [id, cost] : journal.launch_costs) EXPECT_TRUE(cost.launch_bound);
  int graphs = executor.graphs;
  EXPECT_EQ(graphs, static_cast<int>(kMaxSustained) * kLaunchCostPairs);
  run(&executor);
  EXPECT_EQ(executor.graphs, graphs);
}

TEST_F(SweepTest, StopsBetweenStepsWhenAsked) {
  stop = true;
  SweepSummary s = run(&executor);
  EXPECT_TRUE(s.interrupted);
  EXPECT_TRUE(journal.trials.empty());
}

}  // namespace
}  // namespace gemmtune
