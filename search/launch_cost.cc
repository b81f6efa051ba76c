#include "search/launch_cost.h"

#include <stdexcept>
#include <vector>

#include "search/statistics.h"

namespace gemmtune {

LaunchCost judge_launches(std::span<const double> plain_us, std::span<const double> graph_us) {
  if (plain_us.empty() || plain_us.size() != graph_us.size())
    throw std::invalid_argument("judge_launches needs pairs");
  std::vector<double> ratios;
  for (size_t i = 0; i < plain_us.size(); ++i) ratios.push_back(plain_us[i] / graph_us[i]);
  return {median({graph_us.begin(), graph_us.end()}), median_interval(ratios).low > kLaunchBound};
}

std::optional<LaunchCost> measure_launches(Executor& executor, int handle, bool warm_l2) {
  std::vector<double> plain, graph;
  for (int pair = 0; pair < kLaunchCostPairs; ++pair) {
    GraphResult got = executor.sample_graph(handle, warm_l2);
    if (got.outcome != Outcome::ok || got.graph_us <= 0) return std::nullopt;
    plain.push_back(got.plain_us);
    graph.push_back(got.graph_us);
  }
  return judge_launches(plain, graph);
}

}  // namespace gemmtune
