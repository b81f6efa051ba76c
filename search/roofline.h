// The two bounds that no kernel can beat, and a rough order of configurations. Neither is ever shown as a
// time that a kernel took.
#pragma once

#include "gemm/arch.h"
#include "gemm/problem.h"
#include "kernel_templates/family.h"

namespace gemmtune {

struct Roofline {
  double compute_us;  ///< FLOP / dense peak
  double memory_us;   ///< compulsory bytes / DRAM bandwidth
  double bound_us() const { return compute_us > memory_us ? compute_us : memory_us; }
  const char* bound_by() const { return compute_us > memory_us ? "tensor" : "dram"; }
};

/// From the device's published rates.
Roofline roofline(const Problem& problem, const DeviceSpec& device);

/// Relative cost of a tile plan, to decide which configurations are worth trying first. Waves of CTAs,
/// k-steps bound by MMA, L2 traffic or latency / stages, exposed prologue and epilogue. Arbitrary unit,
/// roughly microseconds.
double tile_cost(const TileShape& tile, const Problem& problem, const DeviceSpec& device);

}  // namespace gemmtune
