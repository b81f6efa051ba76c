#include "search/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "search/launch_cost.h"
#include "search/stopping.h"

namespace gemmtune {
namespace {

constexpr int kFirstLibraryHandle = 1 << 20;
constexpr size_t kLibraryFinalists = 4;  // its first choice and the three fastest others

class Comparer {
 public:
  Comparer(Executor& executor, const Problem& problem, const CompareOptions& options)
      : executor_(executor), problem_(problem), o_(options), order_(options.seed) {}

  Comparison run(const std::vector<Entrant>& entrants) {
    StepResult begun = executor_.begin_problem(problem_, o_.alpha, o_.beta);
    if (begun.outcome != Outcome::ok) {
      result_.problem = begun.message;
      return std::move(result_);
    }
    for (size_t i = 0; i < entrants.size(); ++i) enter(entrants[i], static_cast<int>(i));
    if (o_.algorithms > 0) enter_library();
    for (int round = 0; round < o_.rounds; ++round) {
      o_.now(fmt::format("round {} of {}", round + 1, o_.rounds));
      if (o_.regime == Regime::burst) {
        take_round(all(), Regime::burst);
      } else {
        take_sustained();
      }
    }
    for (Runner& runner : runners_) look_at_launches(runner);
    return report();
  }

 private:
  struct Runner {
    Compared row;
    int handle = 0;
    bool runs = true;
    SampleList screened;
  };

  void enter(const Entrant& entrant, int handle) {
    Runner runner;
    runner.handle = handle;
    runner.row.who = entrant.who;
    const Variant& v = entrant.variant;
    runner.row.what = brief_text(v.family->knobs(), v.config);
    runner.row.outcome = executor_.prepare(handle, v, entrant.kernel);
    if (runner.row.outcome.outcome == Outcome::ok) {
      ValidationResult checked = executor_.validate(handle);
      runner.row.outcome = checked;
      runner.row.validation = checked.validation;
    }
    // A wrong result of ours is no competitor, however fast.
    runner.runs = runner.row.outcome.outcome == Outcome::ok;
    runners_.push_back(std::move(runner));
  }

  void enter_library() {
    LibraryResult library = executor_.prepare_library(kFirstLibraryHandle, o_.algorithms);
    if (library.outcome != Outcome::ok || library.algorithms.empty()) {
      result_.library_problem =
          library.outcome != Outcome::ok ? library.message : library.version + " has no algorithm for it";
      return;
    }
    version_ = library.version;
    result_.algorithms = static_cast<int>(library.algorithms.size());
    std::vector<Runner> offered;
    for (size_t i = 0; i < library.algorithms.size(); ++i) {
      Runner runner;
      runner.handle = kFirstLibraryHandle + static_cast<int>(i);
      runner.row.what = library.algorithms[i].name;
      o_.now(fmt::format("validating the library's algorithm {} of {}", i + 1, library.algorithms.size()));
      ValidationResult checked = executor_.validate(runner.handle);
      runner.row.outcome = checked;
      runner.row.validation = checked.validation;
      bool wrong = checked.outcome == Outcome::wrong_result || checked.outcome == Outcome::unstable;
      if (checked.outcome != Outcome::ok) ++result_.wrong_algorithms;
      // Its first choice is what its users get: timed even if our judge rejects it.
      runner.runs = checked.outcome == Outcome::ok || (i == 0 && wrong);
      if (runner.runs || i == 0) offered.push_back(std::move(runner));
    }
    std::swap(runners_, offered);  // screened among themselves
    screen();
    std::vector<Runner> library_runners = std::move(runners_);
    runners_ = std::move(offered);
    auto screened_us = [](const Runner& r) { return r.screened.empty() ? 1e30 : median_us(r.screened); };
    std::ranges::stable_sort(library_runners.begin() + 1, library_runners.end(), {}, screened_us);
    if (library_runners.size() > kLibraryFinalists)
      library_runners.erase(library_runners.begin() + kLibraryFinalists, library_runners.end());
    first_of_library_ = runners_.size();
    for (Runner& runner : library_runners) runners_.push_back(std::move(runner));
  }

  void screen() {
    for (;;) {
      std::vector<SampleList> lists;
      std::vector<size_t> who;
      for (size_t i = 0; i < runners_.size(); ++i)
        if (runners_[i].runs) lists.push_back(runners_[i].screened), who.push_back(i);
      std::vector<size_t> wanting = to_screen(lists);
      if (wanting.empty()) return;
      std::ranges::shuffle(wanting, order_);
      for (size_t i : wanting) {
        Runner& runner = runners_[who[i]];
        o_.now(fmt::format("screening {} of the library's algorithms", wanting.size()));
        if (std::optional<Sample> sample = take(runner, Regime::burst)) runner.screened.push_back(*sample);
      }
    }
  }

  std::vector<size_t> all() const {
    std::vector<size_t> who;
    for (size_t i = 0; i < runners_.size(); ++i)
      if (runners_[i].runs) who.push_back(i);
    return who;
  }

  void take_round(std::vector<size_t> who, Regime regime) {
    std::ranges::shuffle(who, order_);
    for (size_t i : who) {
      Runner& runner = runners_[i];
      if (!runner.runs) continue;
      std::optional<Sample> sample = take(runner, regime);
      if (!sample) continue;
      sample->round = round_;
      sample->final_round = true;
      runner.row.samples.push_back(*sample);
    }
    ++round_;
  }

  /// Blocks of each beside blocks of the first.
  void take_sustained() {
    std::vector<size_t> who = all();
    if (who.size() == 1) take_round(who, Regime::sustained);
    for (size_t other = 1; other < who.size(); ++other) take_round({who[0], who[other]}, Regime::sustained);
  }

  /// A sample that counts, or nothing; one that fails runs no more.
  std::optional<Sample> take(Runner& runner, Regime regime) {
    for (int attempt = 0; attempt <= kMaxRepeats; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(o_.repeat_pause);
      SampleResult got = executor_.sample(runner.handle, regime, o_.warm_l2);
      if (got.outcome != Outcome::ok) {
        runner.row.outcome = got;
        runner.runs = false;
        return std::nullopt;
      }
      if (got.sample.mark == SampleMark::none) return got.sample;
      ++result_.marked;
    }
    runner.row.outcome = {Outcome::unstable,
                          "every sample was disturbed: heat, or another process on the GPU"};
    runner.runs = false;
    return std::nullopt;
  }

  /// The library's own host code can take longer than a short kernel, ours cannot hide it either.
  void look_at_launches(Runner& runner) {
    Measurement timed;
    timed.samples = runner.row.samples;
    if (!runner.runs || timed.samples.empty() || timed.median_us() > kLaunchCostLookUs) return;
    runner.row.launch_cost = measure_launches(executor_, runner.handle, o_.warm_l2);
  }

  Comparison report() {
    for (Runner& runner : runners_) {
      Measurement m;
      m.samples = runner.row.samples;
      if (m.samples.empty()) continue;
      runner.row.median_us = m.median_us();
      runner.row.relative_spread = m.relative_spread();
    }
    for (size_t i = 0; i < std::min(first_of_library_, runners_.size()); ++i)
      result_.rows.push_back(runners_[i].row);
    if (first_of_library_ < runners_.size()) {
      const Compared* best = nullptr;
      for (size_t i = first_of_library_; i < runners_.size(); ++i) {
        const Compared& row = runners_[i].row;
        bool counts = row.median_us > 0 && row.outcome.outcome == Outcome::ok;
        if (counts && (best == nullptr || row.median_us < best->median_us)) best = &row;
      }
      result_.rows.push_back(runners_[first_of_library_].row);
      result_.rows.back().who = version_ + " first";
      if (best != nullptr) {
        result_.rows.push_back(*best);
        result_.rows.back().who = version_ + " best";
      }
    }
    auto reference = std::ranges::find_if(result_.rows, [](const Compared& r) { return r.median_us > 0; });
    if (reference == result_.rows.end()) return std::move(result_);
    const std::vector<Sample> beside = reference->samples;
    for (Compared& row : result_.rows)
      if (row.median_us > 0) row.ratio = time_ratio(row.samples, beside);
    return std::move(result_);
  }

  Executor& executor_;
  const Problem& problem_;
  const CompareOptions& o_;
  std::mt19937_64 order_;
  std::vector<Runner> runners_;
  size_t first_of_library_ = SIZE_MAX;
  std::string version_;
  int round_ = 0;
  Comparison result_;
};

}  // namespace

Comparison compare(Executor& executor, const Problem& problem, const std::vector<Entrant>& entrants,
                   const CompareOptions& options) {
  return Comparer(executor, problem, options).run(entrants);
}

}  // namespace gemmtune
