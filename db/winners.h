// Which trial is best, and how sure we are: the statistics as pure functions, and the recomputation of stored
// winners.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "db/store.h"

namespace gemmtune {

/// Every number of the choice, with its reason.
struct WinnerRules {
  std::string protocol = "p1";  ///< times of different protocols, or of cold and warm caches, do not compare
  bool warm_l2 = false;
  /// Two medians closer than this are a tie even without noise: what a rerun, a reboot or another board of
  /// the same kind changes.
  double tie_floor = 0.02;
  /// A candidate so noisy that its spread reaches further is still not a tie beyond this.
  double tie_ceiling = 0.10;
  /// The simplest member of the tie set wins, as long as it costs no more than this against the best median.
  double choice_margin = 0.005;
  int resamples = 2000;  ///< of the bootstrap
  uint64_t seed = 1;
};

/// A candidate as the tie rule sees it.
struct Timed {
  double median_us = 0;
  double relative_spread = 0;
};

/// How far behind the best, relative to it, a candidate may be and still tie: the root sum of squares of both
/// relative spreads, within the rules' floor and ceiling.
double tie_threshold(const Timed& best, const Timed& candidate, const WinnerRules& rules);

/// 95 % percentile-bootstrap interval of median(numerator) / median(denominator). Deterministic: the same
/// samples and seed give the same interval on every machine. Both must have samples.
std::pair<double, double> ratio_interval(std::span<const double> numerator,
                                         std::span<const double> denominator, int resamples, uint64_t seed);

/// Number of knobs away from their default; fewer is simpler.
using Simplicity = std::function<int(std::string_view family, std::string_view config)>;

/// Recomputes and stores the winner from the rankable trials; without any, there is none afterwards.
std::optional<Winner> recompute_winner(Store& store, const Problem& problem, int64_t device_id, Regime regime,
                                       const Simplicity& simplicity, const WinnerRules& rules = {});

/// Recomputes the winners that are due because trials came in (also those a killed sweep left). Returns how
/// many.
int refresh_winners(Store& store, const Simplicity& simplicity, const WinnerRules& rules = {});

}  // namespace gemmtune
