// Which configurations to try, and in which order.
#pragma once

#include <cstdint>
#include <vector>

#include "search/space.h"

namespace gemmtune {

struct StrategyInput {
  const Space& space;
  const Problem& problem;
  const DeviceSpec&
      device;  ///< published rates of the device at hand or of the architecture's reference device
  int trials = 32;
  uint64_t seed = 1;
};

/// One way to choose candidates. Strategies propose; they never compile, time or store.
struct Strategy {
  std::string_view name;
  std::string_view help;
  std::vector<Config> (*propose)(const StrategyInput&);
};

std::span<const Strategy> strategies();
/// Throws UsageError with a suggestion.
const Strategy& find_strategy(std::string_view name);

}  // namespace gemmtune
