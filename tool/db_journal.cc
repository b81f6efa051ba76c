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

std::vector<Journal::Known> DbJournal::known_trials(const Problem& problem, Regime regime) {
  std::vector<Known> known;
  TrialFilter filter;
  filter.problem = problem;
  filter.device_id = device_id_;
  for (StoredTrial& stored : store_.trials(filter)) {
    // A trial that failed before timing failed for every regime.
    if (stored.trial.measurement && stored.trial.measurement->regime != regime) continue;
    Known k{stored.id, stored.trial.config, stored.trial.kernel_key, stored.trial.outcome, {}};
    if (stored.trial.measurement) k.samples = std::move(stored.trial.measurement->samples);
    known.push_back(std::move(k));
  }
  return known;
}

void DbJournal::fail(int64_t trial_id, Outcome outcome, const std::string& message) {
  std::optional<StoredTrial> stored = store_.trial(trial_id);
  store_.update_validation(trial_id, outcome, message, stored ? stored->trial.validation : Validation());
}

std::optional<double> DbJournal::settle(const Problem& problem, Regime regime) {
  std::optional<Winner> winner =
      recompute_winner(store_, problem, device_id_, regime, knobs_away_from_default);
  return winner ? std::optional(winner->median_us) : std::nullopt;
}

}  // namespace gemmtune
