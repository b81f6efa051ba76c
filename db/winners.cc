#include "db/winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

namespace gemmtune {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014). std:: distributions differ between standard libraries; this does
/// not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// Below `bound`; its bias of bound / 2^64 is nothing for sample counts.
  size_t below(size_t bound) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<size_t>((z ^ (z >> 31)) % bound);
  }

 private:
  uint64_t state_;
};

double median(std::vector<double>& values) {
  size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle)) + upper) /
         2;
}

double resampled_median(std::span<const double> from, Random& random, std::vector<double>& scratch) {
  scratch.clear();
  for (size_t i = 0; i < from.size(); ++i) scratch.push_back(from[random.below(from.size())]);
  return median(scratch);
}

struct Candidate {
  int64_t id;
  std::string family, config;
  Timed timed;
};

/// Rankable trials by median, up to the first beyond the tie ceiling (inclusive: it is the runner-up if
/// nothing nearer fails to tie). Where there are finalists only they compete: a screening time also selected,
/// so it flatters.
std::vector<Candidate> near_best(Store& store, int64_t problem, int64_t device, Regime regime,
                                 const WinnerRules& rules) {
  std::vector<Candidate> candidates;
  Statement row(
      store.connection(),
      "SELECT t.id, c.family, c.text, t.median_us, t.relative_spread, t.finalist FROM rankable t "
      "JOIN config c ON c.id = t.config_id WHERE t.problem_id = ? AND t.device_id = ? AND t.regime = ? "
      "AND t.protocol = ? AND t.warm = ? ORDER BY t.finalist DESC, t.median_us");
  row.bind(problem, device, name(regime), rules.protocol, rules.warm_l2);
  bool finals = false;
  while (row.step()) {
    if (candidates.empty()) finals = row.integer(5) != 0;
    if (finals && row.integer(5) == 0) break;
    candidates.push_back({row.integer(0), row.text(1), row.text(2), {row.real(3), row.real(4)}});
    if (candidates.back().timed.median_us > candidates.front().timed.median_us * (1 + rules.tie_ceiling))
      break;
  }
  return candidates;
}

std::string evidence_line(const Trial& trial) {
  const Measurement& m = *trial.measurement;
  std::set<std::string_view> fills;
  double over_bound = 0;
  for (const ValidationCase& c : trial.validation.cases) {
    fills.insert(name(c.fill));
    over_bound = std::max(over_bound, c.max_error_over_bound);
  }
  return fmt::format(
      "validated by {} in {} cases ({}), largest error {:.3g} of its bound; {} samples, {} {}, {} L2, "
      "spread {:.2f} %",
      name(trial.validation.by), trial.validation.cases.size(), fmt::join(fills, ", "), over_bound,
      m.counting_times_us().size(), m.protocol, name(m.regime), m.warm_l2 ? "warm" : "cold",
      100 * m.relative_spread());
}

}  // namespace

double tie_threshold(const Timed& best, const Timed& candidate, const WinnerRules& rules) {
  return std::clamp(std::hypot(best.relative_spread, candidate.relative_spread), rules.tie_floor,
                    rules.tie_ceiling);
}

std::pair<double, double> ratio_interval(std::span<const double> numerator,
                                         std::span<const double> denominator, int resamples, uint64_t seed) {
  if (numerator.empty() || denominator.empty() || resamples < 1)
    throw std::invalid_argument("ratio_interval needs samples on both sides");
  Random random(seed);
  std::vector<double> ratios, scratch;
  for (int i = 0; i < resamples; ++i) {
    double above = resampled_median(numerator, random, scratch);
    ratios.push_back(above / resampled_median(denominator, random, scratch));
  }
  std::ranges::sort(ratios);
  auto at = [&](double q) { return ratios[static_cast<size_t>(std::lround(q * double(ratios.size() - 1)))]; };
  return {at(0.025), at(0.975)};
}

std::optional<Winner> recompute_winner(Store& store, const Problem& problem, int64_t device_id, Regime regime,
                                       const Simplicity& simplicity, const WinnerRules& rules) {
  Transaction transaction(store.connection());  // reads and writes see the same trials
  std::vector<Candidate> candidates = near_best(store, store.problem_id(problem), device_id, regime, rules);
  if (candidates.empty()) {
    store.drop_winner(problem, device_id, regime);
    transaction.commit();
    return std::nullopt;
  }
  const Timed best = candidates.front().timed;
  Winner winner;
  winner.problem = problem;
  winner.device_uuid = store.device(device_id).uuid;
  winner.regime = regime;
  const Candidate* chosen = nullptr;
  const Candidate* runner_up = nullptr;
  auto preference = [&](const Candidate& c) {
    return std::tuple(simplicity(c.family, c.config), std::string_view(c.config), std::string_view(c.family),
                      c.id);
  };
  for (const Candidate& c : candidates) {
    if (c.timed.median_us > best.median_us * (1 + tie_threshold(best, c.timed, rules))) {
      if (!runner_up) runner_up = &c;
      continue;
    }
    winner.tie_set.push_back(c.id);
    bool near = c.timed.median_us <= best.median_us * (1 + rules.choice_margin);
    if (near && (!chosen || preference(c) < preference(*chosen))) chosen = &c;
  }
  winner.trial_id = chosen->id;
  winner.median_us = chosen->timed.median_us;
  Trial trial = store.trial(chosen->id).value().trial;
  winner.evidence = evidence_line(trial);
  if (runner_up) {
    std::vector<double> slower = store.trial(runner_up->id).value().trial.measurement->counting_times_us();
    std::vector<double> faster = trial.measurement->counting_times_us();
    std::tie(winner.ratio_low, winner.ratio_high) =
        ratio_interval(slower, faster, rules.resamples, rules.seed);
  }
  store.put_winner(winner, device_id);
  transaction.commit();
  return winner;
}

int refresh_winners(Store& store, const Simplicity& simplicity, const WinnerRules& rules) {
  struct Due {
    Problem problem;
    int64_t device_id;
    Regime regime;
  };
  std::vector<Due> due;
  Statement row(store.connection(),
                "SELECT p.class, p.m, p.n, p.k, w.device_id, w.regime FROM winner_due w "
                "JOIN problem p ON p.id = w.problem_id");
  while (row.step())
    due.push_back({{parse_problem_class(row.text(0)), {row.integer(1), row.integer(2), row.integer(3)}},
                   row.integer(4),
                   parse_regime(row.text(5))});
  for (const Due& d : due) recompute_winner(store, d.problem, d.device_id, d.regime, simplicity, rules);
  return static_cast<int>(due.size());
}

}  // namespace gemmtune
