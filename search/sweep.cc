#include "search/sweep.h"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "kernel_templates/render.h"
#include "search/compiled_kernel.h"
#include "search/contest.h"
#include "search/lap.h"
#include "search/static_check.h"

namespace gemmtune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBusyPause{50};  ///< between two looks at a device that others use

class Sweep {
 public:
  Sweep(const SweepOptions& options, Compiler& compiler, Executor* executor, Journal& journal,
        SweepObserver& observer, const std::atomic<bool>& stop)
      : o_(options),
        compiler_(compiler),
        executor_(executor),
        journal_(journal),
        observer_(observer),
        stop_(stop),
        order_(options.seed) {}

  SweepSummary run() {
    work();
    summary_.wall.total_s = std::chrono::duration<double>(Clock::now() - started_).count();
    return std::move(summary_);
  }

 private:
  void work() {
    SweepPlan plan = plan_sweep(o_, compiler_.toolchain(), executor_, journal_);
    summary_.skipped = plan.skipped;
    const std::vector<PlannedProblem>& problems = plan.problems;
    submit(problems);
    for (size_t i = 0; i < problems.size() && !halted(); ++i) {
      observer_.problem_started(i, problems.size(), problems[i].listed, problems[i].candidates.size());
      tune(problems[i]);
    }
  }

  bool takes_times() const { return executor_ != nullptr && executor_->takes_times(); }

  bool halted() {
    if (stop_) summary_.interrupted = true;
    if (o_.time_budget && Clock::now() - started_ > *o_.time_budget) summary_.out_of_time = true;
    return summary_.interrupted || summary_.out_of_time;
  }

  /// Queues every distinct kernel that the journal lacks, in the order in which the problems will want them.
  void submit(const std::vector<PlannedProblem>& problems) {
    size_t trials = 0;
    std::set<std::string> seen;
    std::vector<const Candidate*> missing;
    for (const PlannedProblem& planned : problems)
      for (const Candidate& candidate : planned.candidates) {
        ++trials;
        if (!seen.insert(candidate.key).second) continue;
        // A stored failure stands too: the key covers everything that goes in, so it would fail again.
        if (journal_.has_kernel(candidate.key, runs_ptx())) {
          ++summary_.kernels_cached;
        } else {
          missing.push_back(&candidate);
        }
      }
    observer_.planned(trials, seen.size(), seen.size() - missing.size());
    for (const Candidate* candidate : missing) submit(*candidate);
  }

  void submit(const Candidate& candidate) {
    pending_.insert(candidate.key);
    compiler_.submit({candidate.key, render(candidate.variant), std::string(o_.arch->name)});
    ++to_compile_;
  }

  bool runs_ptx() const { return executor_ != nullptr && executor_->runs_ptx(); }

  /// From the compiler if it is still at work on it (then stored), else from the journal.
  CompiledKernel kernel_of(const Candidate& candidate) {
    if (!pending_.contains(candidate.key)) {
      if (std::optional<CompiledKernel> kernel = journal_.find_kernel(candidate.key)) return *kernel;
      submit(candidate);  // its stored bytes are damaged
    }
    CompileResult result = [&] {
      Lap lap(summary_.wall.compiler_s);
      return compiler_.take(candidate.key);
    }();
    pending_.erase(candidate.key);
    ++summary_.kernels_compiled;
    summary_.compile_ms.push_back(result.compile_ms);
    observer_.compiling(to_compile_ - pending_.size(), to_compile_);
    CompiledKernel kernel = compiled_kernel(candidate.variant, compiler_.toolchain(), std::move(result));
    journal_.put_kernel(kernel);
    return kernel;
  }

  int64_t record(const Trial& trial) {
    ++summary_.outcomes[trial.outcome];
    observer_.trial_finished(trial);
    return journal_.record(trial);
  }

  /// The device alone, while this lives.
  struct Reservation {
    Executor* executor;
    ~Reservation() {
      if (executor != nullptr) executor->release();
    }
  };

  /// Waits for the device, while compilations go on. False: the sweep is to end first.
  bool reserve() {
    if (executor_ == nullptr) return true;
    bool told = false;
    while (std::optional<std::string> holder = executor_->reserve()) {
      if (!told) observer_.device_busy(*holder);
      told = true;
      if (halted()) return false;
      auto next = Clock::now() + kBusyPause;
      compiler_.poll(kBusyPause);
      std::this_thread::sleep_until(next);  // with nothing to compile poll() returns at once
    }
    return true;
  }

  void tune(const PlannedProblem& planned) {
    if (!reserve()) return;
    Reservation reservation{executor_};
    // Behind the reservation: who had the device may have been at this very problem.
    KnownTrials known = known_trials(journal_, planned.problem, o_.timing(Regime::burst));
    problem_begun_ = false;
    Field field;
    size_t ok = 0;
    for (size_t i = 0; i < planned.candidates.size() && !halted(); ++i) {
      const Candidate& candidate = planned.candidates[i];
      auto found = known.find({candidate.config_text, candidate.key});
      if (found != known.end()) {
        Journal::Known& trial = found->second;
        ++summary_.trials_resumed;
        ++summary_.outcomes[trial.outcome];
        if (trial.outcome != Outcome::ok) continue;
        ++ok;
        field.add({trial.id, &candidate, static_cast<int>(i), false, std::move(trial.validation),
                   trial.launch_cost_known},
                  std::move(trial.samples));
        continue;
      }
      auto start = Clock::now();
      CompiledKernel kernel = kernel_of(candidate);
      Trial trial = evaluate(planned, candidate, static_cast<int>(i), kernel);
      trial.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      int64_t id = record(trial);
      compiler_.poll(std::chrono::milliseconds(0));  // hands the next source to idle workers
      if (trial.outcome != Outcome::ok) continue;
      ++ok;
      field.add({id, &candidate, static_cast<int>(i), true, std::move(trial.validation)}, {});
    }
    if (!takes_times()) {
      observer_.problem_finished(planned.listed, std::nullopt, ok, planned.candidates.size());
      return;
    }
    std::optional<double> winner = measure(planned, field);
    if (!winner && !halted()) summary_.without_winner.push_back(to_string(planned.listed.shape));
    observer_.problem_finished(planned.listed, winner, ok, planned.candidates.size());
  }

  /// One line a stage; every stage may be the last.
  Trial evaluate(const PlannedProblem& planned, const Candidate& candidate, int handle,
                 const CompiledKernel& kernel) {
    Trial trial = untried(planned.problem, candidate);
    auto end = [&](std::string_view stage, Outcome outcome, std::string message) {
      trial.stage = stage;
      trial.outcome = outcome;
      trial.message = std::move(message);
      return trial;
    };
    if (!kernel.ok) return end("compile", Outcome::compile_failed, kernel.log);
    std::string rejected = static_violation(candidate.variant, kernel.evidence);
    if (!rejected.empty()) return end("static", Outcome::rejected_static, rejected);
    if (executor_ == nullptr) return end("static", Outcome::compiled, "");

    if (StepResult begun = begin(planned); begun.outcome != Outcome::ok)
      return end("load", Outcome::launch_failed, begun.message);
    if (StepResult loaded = load(handle, candidate, kernel); loaded.outcome != Outcome::ok)
      return end("load", loaded.outcome, loaded.message);
    ValidationResult checked = [&] {
      Lap lap(summary_.wall.validate_s);
      return executor_->validate(handle);
    }();
    trial.validation = checked.validation;
    if (checked.outcome != Outcome::ok) return end("validate", checked.outcome, checked.message);
    if (executor_->takes_times()) trial.measurement = unmeasured(o_.timing(Regime::burst));
    return end("done", Outcome::ok, "");
  }

  StepResult begin(const PlannedProblem& planned) {
    if (problem_begun_) return {};
    Lap lap(summary_.wall.operands_s);
    StepResult result = executor_->begin_problem(planned.problem, o_.alpha, o_.beta);
    problem_begun_ = result.outcome == Outcome::ok;
    return result;
  }

  StepResult load(int handle, const Candidate& candidate, const CompiledKernel& kernel) {
    Lap lap(summary_.wall.load_s);
    return executor_->prepare(handle, candidate.variant, kernel);
  }

  /// The winner's median in us of the regime asked for.
  std::optional<double> measure(const PlannedProblem& planned, Field& field) {
    Contest::Host host{*executor_,
                       journal_,
                       observer_,
                       summary_,
                       order_,
                       [this] { return halted(); },
                       [this] { compiler_.poll(std::chrono::milliseconds(0)); },
                       [&](Contestant& contestant) { return make_ready(planned, contestant); }};
    Contest contest(o_, planned, host);
    contest.burst(field);
    std::optional<double> winner = journal_.settle(planned.problem, o_.timing(Regime::burst));
    if (o_.regime == Regime::burst) return winner;
    if (!halted()) contest.sustained(field);
    return journal_.settle(planned.problem, o_.timing(Regime::sustained));
  }

  StepResult make_ready(const PlannedProblem& planned, Contestant& contestant) {
    if (contestant.prepared) return {};
    StepResult ready = begin(planned);
    if (ready.outcome == Outcome::ok)
      ready = load(contestant.handle, *contestant.candidate, kernel_of(*contestant.candidate));
    contestant.prepared = ready.outcome == Outcome::ok;
    return ready;
  }

  const SweepOptions& o_;
  Compiler& compiler_;
  Executor* executor_;
  Journal& journal_;
  SweepObserver& observer_;
  const std::atomic<bool>& stop_;
  std::mt19937_64 order_;
  Clock::time_point started_ = Clock::now();
  SweepSummary summary_;
  std::set<std::string> pending_;
  size_t to_compile_ = 0;
  bool problem_begun_ = false;
};

}  // namespace

SweepSummary run_sweep(const SweepOptions& options, Compiler& compiler, Executor* executor, Journal& journal,
                       SweepObserver& observer, const std::atomic<bool>& stop) {
  return Sweep(options, compiler, executor, journal, observer, stop).run();
}

}  // namespace gemmtune
