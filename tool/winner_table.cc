#include "tool/winner_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "db/stale_mark.h"
#include "kernel_templates/family.h"
#include "search/roofline.h"

namespace gemmtune {
namespace {

/// 95 %: "1.004-1.012"; two numbers for programs.
Cell interval(const Interval& i) { return Cell(fmt::format("{:.3f}-{:.3f}", i.low, i.high)); }

std::string counts_text(const std::map<Outcome, int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [outcome, count] : counts)
    if (count > 0) parts.push_back(fmt::format("{} {}", count, name(outcome)));
  return parts.empty() ? "never tried" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string brief_config(const RankedTrial& trial) {
  const KernelFamily* known = find_family(trial.family);
  return known == nullptr ? trial.config
                          : brief_text(known->knobs(), parse_config(known->knobs(), trial.config));
}

std::string launch_text(const std::optional<LaunchCost>& cost) {
  return cost && cost->launch_bound ? fmt::format("bound: {:.2f} us in a graph", cost->graph_us) : "";
}

Table answers_table(const std::vector<BestAnswer>& answers, std::span<const ListedShape> shapes,
                    const DeviceSpec* rates) {
  Table table({{"m", "M"},
               {"n", "N"},
               {"k", "K"},
               {"name", "name", true},
               {"problem_class", "class", true},
               {"rank", "#"},
               {"time_us", "time us"},
               {"tflops", "TFLOP/s"},
               {"roofline_share", "roofline"},
               {"spread", "spread"},
               {"ties", "ties"},
               {"ratio", "x winner", true},
               {"next_ratio", "next x winner", true},
               {"launch", "launch", true},
               {"obtained", "obtained", true},
               {"family", "family", true},
               {"config", "config (knobs off their default)", true}});
  for (const BestAnswer& answer : answers) {
    const Shape& s = answer.problem.shape;
    auto listed = std::ranges::find(shapes, s, &ListedShape::shape);
    std::string shape_name = listed == shapes.end() ? "" : listed->name;
    std::string cls = to_string(answer.problem.cls);
    if (answer.top.empty() || answer.basis == Basis::none) {
      table.add(
          {s.m, s.n, s.k, shape_name, cls, Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), "", "", "",
           fmt::format("no winner: {}{}", counts_text(answer.counts),
                       answer.device.name == "emulator" ? " on the emulator, which takes no times" : ""),
           "", ""});
      continue;
    }
    const DeviceSpec* device = rates != nullptr ? rates : find_device_spec(answer.device.name);
    int rank = 0;
    for (const RankedTrial& trial : answer.top) {
      bool measured = answer.basis == Basis::measured;
      double time = measured ? trial.median_us.value_or(0) : trial.predicted_us.value_or(0);
      Cell share;
      if (device != nullptr && time > 0)
        share = Cell::share(roofline(answer.problem, *device).bound_us() / time);
      Cell ties;
      if (rank == 0 && answer.winner) ties = Cell(answer.winner->ties.size());
      if (rank > 0) ties = trial.tie ? Cell("tie") : Cell("");
      Cell ratio(""), next("");
      if (rank > 0 && trial.tie) ratio = interval(*trial.tie);
      if (rank == 0 && answer.winner && answer.winner->ratio_low > 0)
        next = interval({answer.winner->ratio_low, answer.winner->ratio_high});
      std::string obtained =
          measured
              ? fmt::format("measured on {} ({}{}), validated by {}", answer.device.name, name(answer.regime),
                            answer.warm_l2 ? ", warm L2" : "", name(trial.validated_by)) +
                    (rank == 0 && answer.winner && is_stale(*answer.winner) ? ", stale" : "")
              : fmt::format("predicted by {}", trial.model);
      table.add({s.m, s.n, s.k, shape_name, cls, ++rank, Cell::real(time, 2), Cell::real(tflops(s, time), 1),
                 share, trial.relative_spread ? Cell::share(*trial.relative_spread) : Cell(), ties, ratio,
                 next, launch_text(trial.launch_cost), obtained, trial.family, brief_config(trial)});
    }
  }
  return table;
}

std::string winner_table(Store& store, const std::vector<Problem>& problems,
                         std::span<const ListedShape> shapes, const std::string& device_uuid,
                         const Timing& timing, const DeviceSpec& rates, int top, Format format) {
  BestFilter filter;
  filter.problems = problems;
  if (!device_uuid.empty()) filter.device_uuid = device_uuid;
  filter.timing = timing;
  filter.top = top;
  return answers_table(best(store, filter), shapes, &rates).render(format);
}

}  // namespace gemmtune
