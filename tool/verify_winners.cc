#include "tool/verify_winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "db/stale_mark.h"
#include "db/winners.h"
#include "kernel_templates/render.h"
#include "search/compiled_kernel.h"
#include "search/static_check.h"
#include "tool/db_journal.h"
#include "tool/reservation.h"

namespace gemmtune {
namespace {

// Two rounds over all winners: what drifts while they run (temperature, another load) differs between them.
constexpr int kRounds = 2, kSamplesEach = 4;
// Of a visit, not counted. The worker heats up with a problem's first sample, without pauses; a sweep's
// finalists are sampled long behind that. On an H200 the first samples are 3 to 5 % slower.
constexpr int kSettlingSamples = 24;

// Of the ratio of two medians of different days: what a rerun, a reboot or another board changes without
// noise; and what even the noisiest candidate does not excuse.
constexpr double kSmallestNoise = 0.02, kLargestNoise = 0.10;

Variant variant_of(const BestAnswer& stored) {
  const RankedTrial& trial = stored.top.front();
  const KernelFamily* family = find_family(trial.family);
  return {family, &find_arch(trial.arch), stored.problem.cls, parse_config(family->knobs(), trial.config)};
}

class Verification {
 public:
  Verification(Store& store, Compiler& compiler, Executor& executor, const VerifyOptions& options,
               int64_t sweep_id)
      : store_(store),
        compiler_(compiler),
        executor_(executor),
        o_(options),
        sweep_id_(sweep_id),
        journal_(store, executor.device(), sweep_id),
        device_id_(store.device_id(executor.device())) {}

  std::vector<VerifiedWinner> run(std::vector<BestAnswer> winners) {
    for (BestAnswer& stored : winners) {
      Entry entry;
      entry.variant = variant_of(stored);
      entry.row.stored = std::move(stored);
      entry.row.driver_then = entry.row.stored.device.driver_version;
      entry.row.driver_now = executor_.device().driver_version;
      entries_.push_back(std::move(entry));
    }
    compile();
    std::vector<size_t> order(entries_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::mt19937_64 random(o_.seed);
    const int rounds = executor_.takes_times() ? kRounds : 1;
    size_t done = 0;
    for (int round = 0; round < rounds; ++round) {
      std::ranges::shuffle(order, random);
      for (size_t i : order) {
        Entry& entry = entries_[i];
        o_.progress(done++, order.size() * static_cast<size_t>(rounds), entry.row.stored.problem.shape);
        if (entry.row.outcome == Outcome::ok) visit(entry, round, static_cast<int>(i));
      }
    }
    std::vector<VerifiedWinner> rows;
    for (Entry& entry : entries_) {
      settle(entry);
      rows.push_back(std::move(entry.row));
    }
    return rows;
  }

 private:
  struct Entry {
    VerifiedWinner row;
    Variant variant;
    CompiledKernel kernel;
    Validation validation;
    std::vector<Sample> samples;
  };

  void compile() {
    std::vector<Entry*> wanting;
    for (Entry& entry : entries_) {
      std::string source = render(entry.variant), arch(entry.variant.arch->name);
      entry.kernel.key = compile_key(source, arch, compiler_.toolchain());
      entry.row.compiled_again = entry.kernel.key != entry.row.stored.top.front().kernel_key;
      std::optional<CompiledKernel> known = store_.find_kernel(entry.kernel.key);
      if (known && (!executor_.runs_ptx() || !known->ptx.empty())) {
        entry.kernel = *known;
        continue;
      }
      entry.row.compiled_again = true;
      bool queued = std::ranges::any_of(wanting, [&](Entry* e) { return e->kernel.key == entry.kernel.key; });
      if (!queued) compiler_.submit({entry.kernel.key, source, arch});
      wanting.push_back(&entry);
    }
    for (Entry* entry : wanting) {
      if (std::optional<CompiledKernel> known = store_.find_kernel(entry->kernel.key)) {
        entry->kernel = *known;  // of another shape
      } else {
        entry->kernel =
            compiled_kernel(entry->variant, compiler_.toolchain(), compiler_.take(entry->kernel.key));
        store_.put_kernel(entry->kernel);
      }
    }
    for (Entry& entry : entries_) {
      if (!entry.kernel.ok) fail(entry, Outcome::compile_failed, entry.kernel.log);
      if (entry.kernel.ok)
        if (std::string why = static_violation(entry.variant, entry.kernel.evidence); !why.empty())
          fail(entry, Outcome::rejected_static, why);
    }
  }

  static void fail(Entry& entry, Outcome outcome, std::string message) {
    bool compiled = outcome != Outcome::compile_failed && outcome != Outcome::rejected_static;
    entry.row.verdict = compiled ? Verdict::wrong : Verdict::no_kernel;
    entry.row.outcome = outcome;
    entry.row.message = std::move(message);
  }

  /// One winner, one round. Sweeps do not store alpha and beta; what is proven depends on neither value.
  void visit(Entry& entry, int round, int handle) {
    const Problem& problem = entry.row.stored.problem;
    StepResult step = executor_.begin_problem(problem, 1, problem.cls.beta ? 1.0f : 0.0f);
    if (step.outcome != Outcome::ok) return fail(entry, Outcome::launch_failed, step.message);
    step = executor_.prepare(handle, entry.variant, entry.kernel);
    if (step.outcome == Outcome::ok && round == 0) {
      ValidationResult checked = executor_.validate(handle);
      entry.validation = checked.validation;
      step = checked;
    }
    if (!executor_.takes_times()) return finish(entry, step);
    // A sustained sample begins with 0.7 s of its own.
    const int settling = o_.regime == Regime::burst ? kSettlingSamples : 0;
    for (int i = -settling; i < kSamplesEach && step.outcome == Outcome::ok; ++i) {
      SampleResult got = executor_.sample(handle, o_.regime, false);
      step = got;
      got.sample.round = round;
      got.sample.final_round = true;  // of winners only, and chosen before they were taken
      if (i >= 0 && step.outcome == Outcome::ok) entry.samples.push_back(got.sample);
    }
    finish(entry, step);
  }

  static void finish(Entry& entry, const StepResult& step) {
    if (step.outcome != Outcome::ok) fail(entry, step.outcome, step.message);
  }

  void settle(Entry& entry) {
    judge_time(entry);
    const BestAnswer& stored = entry.row.stored;
    const RankedTrial& was = stored.top.front();
    bool same_kernel = entry.kernel.key == was.kernel_key;
    // A wrong result of the very kernel is its trial's end, wherever it was found; a fault or a time is the
    // device's.
    bool same_device = stored.device_id == device_id_;
    if (same_kernel && entry.row.verdict == Verdict::wrong && (same_device || !executor_.takes_times())) {
      journal_.fail(was.trial_id, entry.row.outcome, "verify: " + entry.row.message);
    } else if (!same_kernel || !same_device) {
      record(entry);
    }
    refresh_winners(store_, knobs_away_from_default);  // before a mark, which choosing anew would take away
    bool timed_otherwise = entry.row.verdict == Verdict::slower || entry.row.verdict == Verdict::faster;
    std::string evidence = without_stale(stored.winner->evidence);
    if (timed_otherwise || (entry.row.verdict != Verdict::holds && !same_device)) {
      std::string now = timed_otherwise
                            ? entry.row.message
                            : fmt::format("{} with driver {}", name(entry.row.outcome), entry.row.driver_now);
      store_.set_winner_evidence(*stored.winner, stored.device_id,
                                 fmt::format("{}{}; {}", kStale, now, evidence));
    } else if (entry.row.verdict == Verdict::holds && is_stale(*stored.winner)) {
      store_.set_winner_evidence(*stored.winner, stored.device_id, evidence);
    }
  }

  void judge_time(Entry& entry) const {
    if (entry.row.outcome != Outcome::ok || entry.samples.empty()) return;
    Measurement now;
    now.samples = entry.samples;
    const RankedTrial& was = entry.row.stored.top.front();
    entry.row.now_us = now.median_us();
    entry.row.noise = std::clamp(std::hypot(was.relative_spread.value_or(0), now.relative_spread()),
                                 kSmallestNoise, kLargestNoise);
    double change = *entry.row.change();
    if (std::abs(change - 1) <= entry.row.noise) return;
    entry.row.verdict = change > 1 ? Verdict::slower : Verdict::faster;
    entry.row.message = fmt::format("{:.2f} us, {:.3f} x the stored time (noise {:.1f} %), driver {}",
                                    *entry.row.now_us, change, 100 * entry.row.noise, entry.row.driver_now);
  }

  void record(Entry& entry) {
    const RankedTrial& was = entry.row.stored.top.front();
    Trial trial;
    trial.problem = entry.row.stored.problem;
    trial.family = was.family;
    trial.arch = was.arch;
    trial.config = was.config;
    trial.kernel_key = entry.kernel.key;
    trial.outcome = entry.row.outcome;
    trial.message = entry.row.outcome == Outcome::ok ? "" : entry.row.message;
    trial.stage = entry.row.outcome == Outcome::ok          ? "done"
                  : entry.row.verdict == Verdict::no_kernel ? "compile"
                                                            : "validate";
    trial.validation = entry.validation;
    Timing timing{.regime = o_.regime};
    if (trial.outcome == Outcome::ok && executor_.takes_times()) {
      trial.measurement = unmeasured(timing);
      trial.measurement->samples = entry.samples;
    }
    if (trial.outcome == Outcome::ok && !trial.validation.passed()) return;
    store_.record_trial(trial, device_id_, sweep_id_);
    if (executor_.takes_times())
      recompute_winner(store_, trial.problem, device_id_, timing, knobs_away_from_default);
  }

  Store& store_;
  Compiler& compiler_;
  Executor& executor_;
  const VerifyOptions& o_;
  int64_t sweep_id_;
  DbJournal journal_;
  int64_t device_id_;
  std::vector<Entry> entries_;
};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::slower:
      return "slower";
    case Verdict::faster:
      return "faster";
    case Verdict::wrong:
      return "wrong";
    case Verdict::no_kernel:
      return "no kernel";
  }
  return "";
}

std::vector<BestAnswer> winners_to_verify(Store& store, const Executor& executor,
                                          const VerifyOptions& options) {
  refresh_winners(store, knobs_away_from_default);  // a killed sweep may have left some due
  BestFilter filter;
  filter.problems = options.problems;
  filter.cls = options.cls;
  filter.timing.regime = options.regime;
  if (executor.takes_times()) filter.device_uuid = executor.device().uuid;
  std::map<Problem, BestAnswer> newest;
  for (BestAnswer& answer : best(store, filter)) {
    if (!answer.winner || answer.top.empty() || answer.top.front().arch != executor.device().arch) continue;
    if (find_family(answer.top.front().family) == nullptr) continue;
    auto [at, added] = newest.try_emplace(answer.problem, answer);
    if (!added && at->second.winner->updated_at < answer.winner->updated_at) at->second = std::move(answer);
  }
  std::vector<BestAnswer> winners;
  for (auto& [problem, answer] : newest) winners.push_back(std::move(answer));
  return winners;
}

std::vector<VerifiedWinner> verify_winners(Store& store, Compiler& compiler, Executor& executor,
                                           std::vector<BestAnswer> winners, const VerifyOptions& options,
                                           int64_t sweep_id) {
  DeviceReservation reservation(executor);
  return Verification(store, compiler, executor, options, sweep_id).run(std::move(winners));
}

}  // namespace gemmtune
