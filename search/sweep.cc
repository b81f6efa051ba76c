#include "search/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "kernel_templates/render.h"
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
    std::vector<PlannedProblem> problems = plan();
    submit(problems);
    for (size_t i = 0; i < problems.size() && !halted(); ++i) {
      observer_.problem_started(i, problems.size(), problems[i].listed, problems[i].candidates.size());
      tune(problems[i]);
    }
    return std::move(summary_);
  }

 private:
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
      for (Config& config : o_.strategy->propose({space, planned.problem, *device, o_.trials, o_.seed})) {
        Candidate candidate;
        candidate.variant = {o_.family, o_.arch, o_.cls, config};
        candidate.config_text = to_text(o_.family->knobs(), config);
        candidate.key =
            compile_key(render(candidate.variant), std::string(o_.arch->name), compiler_.toolchain());
        planned.candidates.push_back(std::move(candidate));
      }
      if (planned.candidates.empty()) {
        std::vector<Space::Rejection> why = space.rejections(2000, o_.seed);
        summary_.skipped.push_back(fmt::format("{}: no legal configuration ({})", to_string(listed.shape),
                                               why.empty() ? "the space is empty" : why.front().example));
        continue;
      }
      problems.push_back(std::move(planned));
    }
    return problems;
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
    CompileResult result = compiler_.take(candidate.key);
    pending_.erase(candidate.key);
    ++summary_.kernels_compiled;
    summary_.compile_ms.push_back(result.compile_ms);
    observer_.compiling(to_compile_ - pending_.size(), to_compile_);
    CompiledKernel kernel;
    kernel.key = result.key;
    kernel.family = o_.family->name();
    kernel.arch = o_.arch->name;
    kernel.problem_class = to_string(o_.cls);
    kernel.config = to_text(o_.family->knobs(), compiled_part(*o_.family, candidate.variant.config));
    kernel.toolchain = compiler_.toolchain();
    kernel.ok = result.ok;
    kernel.cubin = std::move(result.cubin);
    kernel.ptx = std::move(result.ptx);
    kernel.evidence = planned_evidence(candidate.variant, result.evidence);
    kernel.compile_ms = result.compile_ms;
    kernel.log = std::move(result.log);
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
    std::map<std::pair<std::string, std::string>, Journal::Known> known;
    for (Journal::Known& trial : journal_.known_trials(planned.problem, o_.regime))
      known.insert_or_assign({trial.config, trial.kernel_key}, std::move(trial));

    problem_begun_ = false;
    std::vector<Running> running;
    std::vector<SampleList> samples;
    size_t ok = 0;
    for (size_t i = 0; i < planned.candidates.size() && !halted(); ++i) {
      const Candidate& candidate = planned.candidates[i];
      auto found = known.find({candidate.config_text, candidate.key});
      if (found != known.end()) {
        ++summary_.trials_resumed;
        ++summary_.outcomes[found->second.outcome];
        if (found->second.outcome != Outcome::ok) continue;
        ++ok;
        running.push_back({found->second.id, &candidate, static_cast<int>(i), false});
        samples.push_back(std::move(found->second.samples));
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
      running.push_back({id, &candidate, static_cast<int>(i), true});
      samples.emplace_back();
    }
    if (executor_ == nullptr || !executor_->takes_times()) {
      observer_.problem_finished(planned.listed, std::nullopt, ok, planned.candidates.size());
      return;
    }
    measure(planned, running, samples);
    std::optional<double> winner = journal_.settle(planned.problem, o_.regime);
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
    if (StepResult loaded = executor_->prepare(handle, candidate.variant, kernel);
        loaded.outcome != Outcome::ok)
      return end("load", loaded.outcome, loaded.message);
    ValidationResult checked = executor_->validate(handle);
    trial.validation = checked.validation;
    if (checked.outcome != Outcome::ok) return end("validate", checked.outcome, checked.message);
    if (executor_->takes_times()) trial.measurement = Measurement{"p1", o_.regime, false, {}};
    return end("done", Outcome::ok, "");
  }

  StepResult begin(const PlannedProblem& planned) {
    if (problem_begun_) return {};
    StepResult result = executor_->begin_problem(planned.problem, o_.alpha, o_.beta);
    problem_begun_ = result.outcome == Outcome::ok;
    return result;
  }

  /// Screening, then final rounds, interleaved in random order. Samples are stored one by one.
  void measure(const PlannedProblem& planned, std::vector<Running>& running,
               std::vector<SampleList>& samples) {
    size_t taken = 0;
    for (bool final_rounds : {false, true}) {
      while (!halted()) {
        std::vector<size_t> wanting = final_rounds ? to_finish(samples) : to_screen(samples);
        if (wanting.empty()) break;
        std::ranges::shuffle(wanting, order_);
        std::vector<size_t> dropped;
        for (size_t i : wanting) {
          if (halted()) return;
          SampleResult got = sample(planned, running[i]);
          if (got.outcome != Outcome::ok) {
            journal_.fail(running[i].trial_id, got.outcome, got.message);
            --summary_.outcomes[Outcome::ok];
            ++summary_.outcomes[got.outcome];
            dropped.push_back(i);
            continue;
          }
          got.sample.final_round = final_rounds;
          got.sample.round = static_cast<int>(samples[i].size());
          samples[i].push_back(got.sample);
          journal_.append_sample(running[i].trial_id, got.sample);
          observer_.measuring(++taken, final_rounds);
          compiler_.poll(std::chrono::milliseconds(0));
        }
        std::ranges::sort(dropped, std::greater{});
        for (size_t i : dropped) {
          running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
          samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
  }

  SampleResult sample(const PlannedProblem& planned, Running& candidate) {
    if (!candidate.prepared) {
      StepResult ready = begin(planned);
      if (ready.outcome == Outcome::ok)
        ready = executor_->prepare(candidate.handle, candidate.candidate->variant,
                                   kernel_of(*candidate.candidate));
      if (ready.outcome != Outcome::ok) return {ready, {}};
      candidate.prepared = true;
    }
    return executor_->sample(candidate.handle, o_.regime);
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
