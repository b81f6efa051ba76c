#include "search/contest.h"

#include <algorithm>
#include <thread>

#include "search/lap.h"
#include "search/launch_cost.h"

namespace gemmtune {

void Field::add(Contestant contestant, SampleList list) {
  contestants.push_back(std::move(contestant));
  samples.push_back(std::move(list));
}

void Field::drop(size_t i) {
  contestants.erase(contestants.begin() + static_cast<std::ptrdiff_t>(i));
  samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(i));
}

int Field::next_round() const {
  int next = 0;
  for (const SampleList& list : samples)
    for (const Sample& sample : list) next = std::max(next, sample.round + 1);
  return next;
}

void Contest::burst(Field& field) {
  if (run_rounds(field, Regime::burst, to_screen, false) && run_rounds(field, Regime::burst, to_finish, true))
    look_at_launches(field);
}

void Contest::sustained(const Field& burst) {
  Timing timing = o_.timing(Regime::sustained);
  std::vector<size_t> chosen = to_measure_sustained(burst.samples);
  std::optional<Journal::Incumbent> stored = host_.journal.incumbent(planned_.problem, timing);
  for (size_t i = 0; stored && i < burst.contestants.size(); ++i)
    if (burst.contestants[i].candidate->config_text == stored->config &&
        std::ranges::find(chosen, i) == chosen.end())
      chosen.push_back(i);
  KnownTrials known = known_trials(host_.journal, planned_.problem, timing);
  Field field;
  for (size_t i : chosen) {
    Contestant contestant = burst.contestants[i];
    auto found = known.find({contestant.candidate->config_text, contestant.candidate->key});
    if (found == known.end()) {
      contestant.trial_id = record_sustained(contestant);
      field.add(std::move(contestant), {});
    } else if (found->second.outcome == Outcome::ok) {
      contestant.trial_id = found->second.id;
      field.add(std::move(contestant), std::move(found->second.samples));
    }
  }
  run_rounds(field, Regime::sustained, to_sustain, true);
}

int64_t Contest::record_sustained(const Contestant& contestant) {
  Trial trial = untried(planned_.problem, *contestant.candidate);
  trial.outcome = Outcome::ok;
  trial.stage = "done";
  trial.validation = contestant.evidence;
  trial.measurement = unmeasured(o_.timing(Regime::sustained));
  return host_.journal.record(trial);
}

bool Contest::run_rounds(Field& field, Regime regime, NextRound next_round, bool final_rounds) {
  for (;;) {
    std::vector<size_t> wanting = next_round(field.samples);
    if (wanting.empty()) return true;
    std::ranges::shuffle(wanting, host_.order);
    int round = field.next_round();
    std::vector<size_t> failed;
    for (size_t i : wanting) {
      switch (take(field.contestants[i], field.samples[i], regime, final_rounds, round)) {
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

Contest::Taken Contest::take(Contestant& contestant, SampleList& samples, Regime regime, bool final_rounds,
                             int round) {
  SweepSummary& summary = host_.summary;
  for (int attempt = 0; attempt <= kMaxRepeats; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(o_.repeat_pause);
    if (host_.halted()) return Taken::halted;
    SampleResult got = sample(contestant, regime);
    if (got.outcome != Outcome::ok) {
      host_.journal.fail(contestant.trial_id, got.outcome, got.message);
      if (regime == Regime::burst) --summary.outcomes[Outcome::ok];
      ++summary.outcomes[got.outcome];
      return Taken::failed;
    }
    got.sample.final_round = final_rounds;
    got.sample.round = round;
    samples.push_back(got.sample);
    host_.journal.append_sample(contestant.trial_id, got.sample);
    host_.sample_taken();
    if (got.sample.mark == SampleMark::none) {
      host_.observer.measuring(++summary.samples, final_rounds);
      return Taken::counts;
    }
    ++summary.marked[got.sample.mark];
    host_.observer.disturbed(got.sample.mark);
  }
  summary.disturbed.push_back(to_string(planned_.listed.shape));
  return Taken::halted;
}

SampleResult Contest::sample(Contestant& contestant, Regime regime) {
  if (StepResult ready = host_.make_ready(contestant); ready.outcome != Outcome::ok) return {ready, {}};
  Lap lap(host_.summary.wall.time_s);
  return host_.executor.sample(contestant.handle, regime, o_.warm_l2);
}

void Contest::look_at_launches(Field& field) {
  for (size_t i : to_measure_sustained(field.samples)) {
    Contestant& contestant = field.contestants[i];
    Measurement timed = unmeasured(o_.timing(Regime::burst));
    timed.samples = field.samples[i];
    if (contestant.launch_cost_known || timed.median_us() > kLaunchCostLookUs) continue;
    if (host_.halted()) return;
    if (host_.make_ready(contestant).outcome != Outcome::ok) continue;
    Lap lap(host_.summary.wall.time_s);
    if (auto cost = measure_launches(host_.executor, contestant.handle, o_.warm_l2))
      host_.journal.put_launch_cost(contestant.trial_id, *cost);
  }
}

}  // namespace gemmtune
