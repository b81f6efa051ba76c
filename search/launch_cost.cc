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

}  // namespace gemmtune
