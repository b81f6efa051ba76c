#include "db/winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "db/stale_mark.h"

namespace gemmtune {
namespace {

/// Rankable trials by median, up to the first beyond the tie ceiling (inclusive: it is the runner-up if
/// nothing nearer fails to tie). Where there are finalists only they compete: a screening time also selected,
/// so it flatters.
std::vector<Contender> near_best(Store& store, int64_t problem, int64_t device, const Timing& timing,
                                 const WinnerRules& rules) {
  std::vector<Contender> contenders;
  Statement row(
      store.connection(),
      "SELECT t.id, c.family, c.text, t.median_us, t.finalist FROM rankable t "
      "JOIN config c ON c.id = t.config_id WHERE t.problem_id = ? AND t.device_id = ? AND t.regime = ? "
      "AND t.protocol = ? AND t.warm = ? ORDER BY t.finalist DESC, t.median_us, t.id");
  row.bind(problem, device, name(timing.regime), timing.protocol, timing.warm_l2);
  bool finals = false;
  while (row.step()) {
    if (contenders.empty()) finals = row.integer(4) != 0;
    if (finals && row.integer(4) == 0) break;
    contenders.push_back({row.integer(0), row.text(1), row.text(2), {}, row.real(3)});
    if (contenders.back().median_us > contenders.front().median_us * rules.tie_ceiling) break;
  }
  for (Contender& c : contenders)
    c.samples = store.trial(c.trial_id).value().trial.measurement.value().counting_samples();
  return contenders;
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

Choice choose(std::span<const Contender> contenders, std::optional<int64_t> incumbent,
              const Simplicity& simplicity, const WinnerRules& rules) {
  Choice choice;
  const Contender& best = contenders.front();
  for (size_t i = 0; i < contenders.size(); ++i) {
    const Contender& c = contenders[i];
    TimeRatio ratio = i == 0 ? TimeRatio{1, {1, 1}, 0} : time_ratio(c.samples, best.samples);
    bool surely_slower = ratio.median > rules.tie_floor && ratio.interval.low > 1;
    if (surely_slower || c.median_us > best.median_us * rules.tie_ceiling) {
      if (!choice.runner_up) choice.runner_up = i;
    } else {
      choice.tied.push_back(i);
    }
  }
  auto preference = [&](size_t i) {
    const Contender& c = contenders[i];
    return std::tuple(simplicity(c.family, c.config), std::string_view(c.config), std::string_view(c.family),
                      c.trial_id);
  };
  std::optional<size_t> stays;
  for (size_t i : choice.tied) {
    if (contenders[i].trial_id == incumbent) stays = i;
    bool near = contenders[i].median_us <= best.median_us * rules.choice_margin;
    if (near && preference(i) < preference(choice.winner)) choice.winner = i;
  }
  if (stays) {
    choice.no_change = contenders[*stays].median_us > best.median_us;
    choice.winner = *stays;
  }
  const std::vector<Sample>& winner = contenders[choice.winner].samples;
  for (size_t i : choice.tied)
    choice.ratios.push_back(i == choice.winner ? TimeRatio{1, {1, 1}, 0}
                                               : time_ratio(contenders[i].samples, winner));
  return choice;
}

std::optional<Winner> recompute_winner(Store& store, const Problem& problem, int64_t device_id,
                                       const Timing& timing, const Simplicity& simplicity,
                                       const WinnerRules& rules) {
  Transaction transaction(store.connection());  // reads and writes see the same trials
  std::vector<Contender> contenders = near_best(store, store.problem_id(problem), device_id, timing, rules);
  if (contenders.empty()) {
    store.drop_winner(problem, device_id, timing);
    transaction.commit();
    return std::nullopt;
  }
  std::optional<Winner> before = store.winner(problem, device_id, timing);
  int enough = timing.regime == Regime::burst ? rules.settled_burst : rules.settled_sustained;
  bool settled = before && !is_stale(*before) && before->final_rounds >= enough;
  Choice choice =
      choose(contenders, settled ? std::optional(before->trial_id) : std::nullopt, simplicity, rules);
  const Contender& chosen = contenders[choice.winner];
  Winner winner;
  winner.problem = problem;
  winner.device_uuid = store.device(device_id).uuid;
  winner.regime = timing.regime;
  winner.warm_l2 = timing.warm_l2;
  winner.trial_id = chosen.trial_id;
  winner.median_us = chosen.median_us;
  if (chosen.samples.front().final_round) winner.final_rounds = static_cast<int>(chosen.samples.size());
  for (size_t i = 0; i < choice.tied.size(); ++i)
    winner.ties.push_back({contenders[choice.tied[i]].trial_id, choice.ratios[i].interval});
  winner.evidence = evidence_line(store.trial(chosen.trial_id).value().trial);
  if (choice.no_change)
    winner.evidence += fmt::format("; no change: the best median is {:.2f} % faster, under 2 % or the noise",
                                   100 * (chosen.median_us / contenders.front().median_us - 1));
  if (choice.runner_up) {
    Interval ratio = time_ratio(contenders[*choice.runner_up].samples, chosen.samples).interval;
    winner.ratio_low = ratio.low;
    winner.ratio_high = ratio.high;
  }
  store.put_winner(winner, device_id);
  transaction.commit();
  return winner;
}

int refresh_winners(Store& store, const Simplicity& simplicity, const WinnerRules& rules) {
  struct Due {
    Problem problem;
    int64_t device_id;
    Timing timing;
  };
  std::vector<Due> due;
  Statement row(store.connection(),
                "SELECT p.class, p.m, p.n, p.k, w.device_id, w.regime, w.warm FROM winner_due w "
                "JOIN problem p ON p.id = w.problem_id");
  while (row.step())
    due.push_back({{parse_problem_class(row.text(0)), {row.integer(1), row.integer(2), row.integer(3)}},
                   row.integer(4),
                   {.regime = parse_regime(row.text(5)), .warm_l2 = row.integer(6) != 0}});
  for (const Due& d : due) recompute_winner(store, d.problem, d.device_id, d.timing, simplicity, rules);
  return static_cast<int>(due.size());
}

}  // namespace gemmtune
