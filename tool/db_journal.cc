#include "tool/db_journal.h"

namespace gemmtune {

int knobs_away_from_default(std::string_view family, std::string_view config) {
  const KernelFamily* known = find_family(family);
  if (known == nullptr) return 0;
  Config parsed = parse_config(known->knobs(), config);
  int away = 0;
  for (size_t i = 0; i < known->knobs().size(); ++i)
    away += parsed.values[i] != known->knobs()[i].default_value;
  return away;
}

std::vector<Journal::Known> DbJournal::known_trials(const Problem& problem, const Timing& timing) {
  std::vector<Known> known;
  TrialFilter filter;
  filter.problem = problem;
  filter.device_id = device_id_;
  for (StoredTrial& stored : store_.trials(filter)) {
    Trial& trial = stored.trial;
    const std::optional<Measurement>& m = trial.measurement;
    // A trial that failed before timing failed for every timing.
    if (m && m->timing() != timing) continue;
    Known k{stored.id, trial.config, trial.kernel_key, trial.outcome, {}, {}, false};
    if (m) k.samples = std::move(trial.measurement->samples);
    k.validation = std::move(trial.validation);
    k.launch_cost_known = stored.launch_cost.has_value();
    known.push_back(std::move(k));
  }
  return known;
}

std::optional<Journal::Incumbent> DbJournal::incumbent(const Problem& problem, const Timing& timing) {
  std::optional<Winner> winner = store_.winner(problem, device_id_, timing);
  if (!winner) return std::nullopt;
  Trial trial = store_.trial(winner->trial_id).value().trial;
  return Incumbent{trial.family, trial.config};
}

void DbJournal::fail(int64_t trial_id, Outcome outcome, const std::string& message) {
  std::optional<StoredTrial> stored = store_.trial(trial_id);
  store_.update_validation(trial_id, outcome, message, stored ? stored->trial.validation : Validation());
}

std::optional<double> DbJournal::settle(const Problem& problem, const Timing& timing) {
  std::optional<Winner> winner =
      recompute_winner(store_, problem, device_id_, timing, knobs_away_from_default);
  return winner ? std::optional(winner->median_us) : std::nullopt;
}

}  // namespace gemmtune
