// Is a time the kernel's or the host's? Back-to-back launches of a very short kernel wait for the next launch
// to arrive; a CUDA graph that replays the same launches does not.
#pragma once

#include <optional>
#include <span>

#include "search/executor.h"

namespace gemmtune {

/// Above this a launch cannot be the bottleneck: the driver takes 2 to 5 us for one.
inline constexpr double kLaunchCostLookUs = 100;
/// Pairs of batches, plain and graph, for the verdict: the fewest that give a 95 % interval.
inline constexpr int kLaunchCostPairs = 6;
/// How much faster the graph must be, beyond doubt, for the mark.
inline constexpr double kLaunchBound = 1.05;

/// Times per launch of batches taken in turn; equally many, at least one. Launch-bound: the whole interval of
/// plain / graph lies above kLaunchBound.
LaunchCost judge_launches(std::span<const double> plain_us, std::span<const double> graph_us);

/// Takes the pairs for a loaded kernel. Nothing: one failed, or there are no graphs.
std::optional<LaunchCost> measure_launches(Executor& executor, int handle, bool warm_l2);

}  // namespace gemmtune
