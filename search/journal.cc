#include "search/journal.h"

namespace gemmtune {

KnownTrials known_trials(Journal& journal, const Problem& problem, const Timing& timing) {
  KnownTrials known;
  for (Journal::Known& trial : journal.known_trials(problem, timing))
    known.insert_or_assign({trial.config, trial.kernel_key}, std::move(trial));
  return known;
}

}  // namespace gemmtune
