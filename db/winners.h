// Which trial is best, and how sure we are: the choice as a pure function, and the recomputation of stored
// winners.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"
#include "search/statistics.h"

namespace gemmtune {

/// Every number of the choice, with its reason.
struct WinnerRules {
  /// Nearer than this to the best is a tie even without noise.
  double tie_floor = kWorthwhile;
  /// A candidate so noisy that nothing is sure is still no tie beyond this.
  double tie_ceiling = 1.10;
  /// The simplest member of the tie set wins, as long as it costs no more than this against the best median.
  double choice_margin = 1.005;
  /// A stored winner with this many counting final samples stays unless another is surely faster, and worth
  /// it. Fewer are an interrupted sweep's.
  int settled_burst = 10, settled_sustained = 6;
};

/// What the choice knows of a candidate.
struct Contender {
  int64_t trial_id = 0;
  std::string family, config;
  std::vector<Sample> samples;  ///< those that count; not empty
  double median_us = 0;
};

/// Number of knobs away from their default; fewer is simpler.
using Simplicity = std::function<int(std::string_view family, std::string_view config)>;

struct Choice {
  size_t winner = 0;                ///< index into the contenders
  std::vector<size_t> tied;         ///< not separable from the best: best first, the winner among them
  std::vector<TimeRatio> ratios;    ///< of `tied`, to the winner
  std::optional<size_t> runner_up;  ///< the best outside the tie set
  bool no_change = false;           ///< the incumbent stays although another has the better median
};

/// Contenders by median, fastest first; at least one. A contender is outside the tie set if it is surely
/// slower (its interval against the best does not reach 1) and by more than the floor; or beyond the ceiling.
/// Among ties the incumbent stays; without one the simplest within the margin wins; then the text of the
/// config decides, so that equals never depend on order.
Choice choose(std::span<const Contender> contenders, std::optional<int64_t> incumbent,
              const Simplicity& simplicity, const WinnerRules& rules = {});

/// Recomputes and stores the winner from the rankable trials; without any, there is none afterwards.
std::optional<Winner> recompute_winner(Store& store, const Problem& problem, int64_t device_id,
                                       const Timing& timing, const Simplicity& simplicity,
                                       const WinnerRules& rules = {});

/// Recomputes the winners that are due because trials came in (also those a killed sweep left), of the
/// protocol in use. Returns how many.
int refresh_winners(Store& store, const Simplicity& simplicity, const WinnerRules& rules = {});

}  // namespace gemmtune
