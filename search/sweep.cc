#include "search/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "gemm/error.h"
#include "kernel_templates/render.h"
#include "search/compiled_kernel.h"
#include "search/launch_cost.h"
#include "search/static_check.h"
#include "search/stopping.h"

namespace gemmtune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBusyPause{50};  ///< between two looks at a device that others use

struct Candidate {
  Variant variant;
  std::string config_text, key;
};

struct PlannedProblem {
  ListedShape listed;
  Problem problem;
  std::vector<Candidate> candidates;
};

/// One candidate that passed validation and is being timed.
struct Running {
  int64_t trial_id;
  const Candidate* candidate;
  int handle;
  bool prepared;
  Validation evidence;
  bool launch_cost_known = false;
};

/// Those that are timed together; `samples` has a list for each, in the same order.
struct Field {
  std::vector<Running> running;
  std::vector<SampleList> samples;
  void add(Running r, SampleList list) {
    running.push_back(std::move(r));
    samples.push_back(std::move(list));
  }
  void drop(size_t i) {
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(i));
  }
  /// Later than every round so far, so that a number is shared only by what was taken side by side.
  int next_round() const {
    int next = 0;
    for (const SampleList& list : samples)
      for (const Sample& sample : list) next = std::max(next, sample.round + 1);
    return next;
  }
};

/// Adds the time of its scope to a sum of seconds.
class Lap {
 public:
  explicit Lap(double& sum_s) : sum_s_(sum_s) {}
  ~Lap() { sum_s_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Lap(const Lap&) = delete;

 private:
  double& sum_s_;
  Clock::time_point start_ = Clock::now();
};

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
    std::vector<PlannedProblem> problems = plan();
    submit(problems);
    for (size_t i = 0; i < problems.size() && !halted(); ++i) {
      observer_.problem_started(i, problems.size(), problems[i].listed, problems[i].candidates.size());
      tune(problems[i]);
    }
  }

  Timing timing(Regime regime) const {
    Timing timing;
    timing.regime = regime;
    timing.warm_l2 = o_.warm_l2;
    return timing;
  }

  bool takes_times() const { return executor_ != nullptr && executor_->takes_times(); }

  bool halted() {
    if (stop_) summary_.interrupted = true;
    if (o_.time_budget && Clock::now() - started_ > *o_.time_budget) summary_.out_of_time = true;
    return summary_.interrupted || summary_.out_of_time;
  }

  std::vector<PlannedProblem> plan() {
    const DeviceSpec* device = executor_ ? find_device_spec(executor_->device().name) : nullptr;
    if (device == nullptr) device = find_device_spec(o_.arch->reference_device);
    std::vector<PlannedProblem> problems;
    for (const ListedShape& listed : o_.shapes) {
      PlannedProblem planned{listed, {o_.cls, listed.shape}, {}};
      Space space(*o_.family, *o_.arch, o_.cls, listed.shape, o_.restrictions);
      for (const Config& config :
           o_.strategy->propose({space, planned.problem, *device, o_.trials, o_.search_seed}))
        planned.candidates.push_back(candidate(config));
      if (planned.candidates.empty()) {
        std::vector<Space::Rejection> why = space.rejections(2000, o_.search_seed);
        summary_.skipped.push_back(fmt::format("{}: no legal configuration ({})", to_string(listed.shape),
                                               why.empty() ? "the space is empty" : why.front().example));
        continue;
      }
      if (takes_times()) add_incumbents(planned);
      problems.push_back(std::move(planned));
    }
    return problems;
  }

  Candidate candidate(const Config& config) const {
    Candidate candidate;
    candidate.variant = {o_.family, o_.arch, o_.cls, config};
    candidate.config_text = to_text(o_.family->knobs(), config);
    candidate.key = compile_key(render(candidate.variant), std::string(o_.arch->name), compiler_.toolchain());
    return candidate;
  }

  /// The stored winners meet their challengers, whatever the strategy proposes: "no change" needs fresh
  /// samples of both.
  void add_incumbents(PlannedProblem& planned) const {
    for (Regime regime : {Regime::burst, o_.regime}) {
      std::optional<Journal::Incumbent> stored = journal_.incumbent(planned.problem, timing(regime));
      if (!stored || stored->family != o_.family->name()) continue;
      try {
        Candidate known = candidate(parse_config(o_.family->knobs(), stored->config));
        if (std::ranges::find(planned.candidates, known.config_text, &Candidate::config_text) ==
            planned.candidates.end())
          planned.candidates.push_back(std::move(known));
      } catch (const UsageError&) {
        // A value that this version no longer declares: it cannot be run again.
      }
    }
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

  using KnownTrials = std::map<std::pair<std::string, std::string>, Journal::Known>;

  KnownTrials known_trials(const Problem& problem, Regime regime) {
    KnownTrials known;
    for (Journal::Known& trial : journal_.known_trials(problem, timing(regime)))
      known.insert_or_assign({trial.config, trial.kernel_key}, std::move(trial));
    return known;
  }

  void tune(const PlannedProblem& planned) {
    if (!reserve()) return;
    Reservation reservation{executor_};
    // Behind the reservation: who had the device may have been at this very problem.
    KnownTrials known = known_trials(planned.problem, Regime::burst);
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
    measure(planned, field);
    std::optional<double> winner = journal_.settle(planned.problem, timing(Regime::burst));
    if (o_.regime == Regime::sustained) {
      if (!halted()) measure_sustained(planned, field);
      winner = journal_.settle(planned.problem, timing(Regime::sustained));
    }
    if (!winner && !halted()) summary_.without_winner.push_back(to_string(planned.listed.shape));
    observer_.problem_finished(planned.listed, winner, ok, planned.candidates.size());
  }

  /// One line a stage; every stage may be the last.
  Trial evaluate(const PlannedProblem& planned, const Candidate& candidate, int handle,
                 const CompiledKernel& kernel) {
    Trial trial;
    trial.problem = planned.problem;
    trial.family = o_.family->name();
    trial.arch = o_.arch->name;
    trial.config = candidate.config_text;
    trial.kernel_key = kernel.key;
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
    if (executor_->takes_times()) trial.measurement = empty_measurement(Regime::burst);
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

  Measurement empty_measurement(Regime regime) const {
    Timing how = timing(regime);
    return {how.protocol, how.regime, how.warm_l2, {}};
  }

  /// Bursts: screening, then the finals, then a look at what launching costs.
  void measure(const PlannedProblem& planned, Field& field) {
    if (run_rounds(planned, field, Regime::burst, to_screen, false) &&
        run_rounds(planned, field, Regime::burst, to_finish, true))
      look_at_launches(planned, field);
  }

  /// Each finalist of the burst beside the fastest of them, in alternating blocks.
  void measure_sustained(const PlannedProblem& planned, const Field& burst) {
    std::optional<Journal::Incumbent> stored = journal_.incumbent(planned.problem, timing(Regime::sustained));
    std::vector<size_t> chosen = to_measure_sustained(burst.samples);
    for (size_t i = 0; stored && i < burst.running.size(); ++i)
      if (burst.running[i].candidate->config_text == stored->config &&
          std::ranges::find(chosen, i) == chosen.end())
        chosen.push_back(i);
    KnownTrials known = known_trials(planned.problem, Regime::sustained);
    Field field;
    for (size_t i : chosen) {
      Running running = burst.running[i];
      auto found = known.find({running.candidate->config_text, running.candidate->key});
      if (found != known.end()) {
        if (found->second.outcome != Outcome::ok) continue;
        running.trial_id = found->second.id;
        field.add(std::move(running), std::move(found->second.samples));
        continue;
      }
      Trial trial;
      trial.problem = planned.problem;
      trial.family = o_.family->name();
      trial.arch = o_.arch->name;
      trial.config = running.candidate->config_text;
      trial.kernel_key = running.candidate->key;
      trial.outcome = Outcome::ok;
      trial.stage = "done";
      trial.validation = running.evidence;
      trial.measurement = empty_measurement(Regime::sustained);
      running.trial_id = journal_.record(trial);
      field.add(std::move(running), {});
    }
    run_rounds(planned, field, Regime::sustained, to_sustain, true);
  }

  /// Rounds in random order as long as `next_round` names someone. False: interrupted, or given up.
  bool run_rounds(const PlannedProblem& planned, Field& field, Regime regime,
                  std::vector<size_t> (*next_round)(std::span<const SampleList>), bool final_rounds) {
    for (;;) {
      std::vector<size_t> wanting = next_round(field.samples);
      if (wanting.empty()) return true;
      std::ranges::shuffle(wanting, order_);
      int round = field.next_round();
      std::vector<size_t> failed;
      for (size_t i : wanting) {
        switch (take(planned, field.running[i], field.samples[i], regime, final_rounds, round)) {
          case Taken::counts:
            break;
          case Taken::failed:
            failed.push_back(i);
            break;
          case Taken::halted:
            return false;
        }
      }
      std::ranges::sort(failed, std::greater{});
      for (size_t i : failed) field.drop(i);
    }
  }

  enum class Taken { counts, failed, halted };

  /// One sample that counts. Marked ones are stored too, and taken again.
  Taken take(const PlannedProblem& planned, Running& running, SampleList& samples, Regime regime,
             bool final_rounds, int round) {
    for (int attempt = 0; attempt <= kMaxRepeats; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(o_.repeat_pause);
      if (halted()) return Taken::halted;
      SampleResult got = sample(planned, running, regime);
      if (got.outcome != Outcome::ok) {
        journal_.fail(running.trial_id, got.outcome, got.message);
        if (regime == Regime::burst) --summary_.outcomes[Outcome::ok];
        ++summary_.outcomes[got.outcome];
        return Taken::failed;
      }
      got.sample.final_round = final_rounds;
      got.sample.round = round;
      samples.push_back(got.sample);
      journal_.append_sample(running.trial_id, got.sample);
      compiler_.poll(std::chrono::milliseconds(0));
      if (got.sample.mark == SampleMark::none) {
        observer_.measuring(++samples_taken_, final_rounds);
        return Taken::counts;
      }
      ++summary_.marked[got.sample.mark];
      observer_.disturbed(got.sample.mark);
    }
    summary_.disturbed.push_back(to_string(planned.listed.shape));
    return Taken::halted;
  }

  StepResult make_ready(const PlannedProblem& planned, Running& running) {
    if (running.prepared) return {};
    StepResult ready = begin(planned);
    if (ready.outcome == Outcome::ok)
      ready = load(running.handle, *running.candidate, kernel_of(*running.candidate));
    running.prepared = ready.outcome == Outcome::ok;
    return ready;
  }

  SampleResult sample(const PlannedProblem& planned, Running& running, Regime regime) {
    if (StepResult ready = make_ready(planned, running); ready.outcome != Outcome::ok) return {ready, {}};
    Lap lap(summary_.wall.time_s);
    return executor_->sample(running.handle, regime, o_.warm_l2);
  }

  /// Of the fastest finalists, where launching may be what takes the time. A failure here costs nothing: the
  /// next sample would meet it, too.
  void look_at_launches(const PlannedProblem& planned, Field& field) {
    for (size_t i : to_measure_sustained(field.samples)) {
      Running& running = field.running[i];
      Measurement timed = empty_measurement(Regime::burst);
      timed.samples = field.samples[i];
      if (running.launch_cost_known || timed.median_us() > kLaunchCostLookUs) continue;
      if (halted()) return;
      if (make_ready(planned, running).outcome != Outcome::ok) continue;
      Lap lap(summary_.wall.time_s);
      std::vector<double> plain, graph;
      for (int pair = 0; pair < kLaunchCostPairs; ++pair) {
        GraphResult got = executor_->sample_graph(running.handle, o_.warm_l2);
        if (got.outcome != Outcome::ok || got.graph_us <= 0) break;
        plain.push_back(got.plain_us);
        graph.push_back(got.graph_us);
      }
      if (graph.size() == kLaunchCostPairs)
        journal_.put_launch_cost(running.trial_id, judge_launches(plain, graph));
    }
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
  size_t samples_taken_ = 0;
};

}  // namespace

SweepSummary run_sweep(const SweepOptions& options, Compiler& compiler, Executor* executor, Journal& journal,
                       SweepObserver& observer, const std::atomic<bool>& stop) {
  return Sweep(options, compiler, executor, journal, observer, stop).run();
}

}  // namespace gemmtune
