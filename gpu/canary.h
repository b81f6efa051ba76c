// Whether a GPU is still what it was: a known GEMM, its result and its rate, against the rate at the start of
// the run. After a kernel has hung or faulted nothing that the GPU says is believed before this has sung
// again.
#pragma once

#include <chrono>
#include <string>

namespace gemmtune {

/// One run of the canary GEMM (gpu/kernels/canary.cu, 4096 x 4096 x 1024 in bf16).
struct CanaryReading {
  std::string wrong;  ///< what was wrong with its result, or that it did not come back; empty: right
  double tflops = 0;  ///< of the fastest of its batches
};

struct CanaryRule {
  /// Of the rate at the start of the run. The fastest of several batches of one kernel repeats within 1 to 2
  /// %; a power cap or a warm GPU takes some percent more. A GPU that fell back to a lower clock domain, lost
  /// part of its memory bandwidth or shares itself with a process that was not there before loses 20 % and
  /// more.
  double slowest_share = 0.85;
  /// A reading may be disturbed, a GPU may need a moment to clock up again.
  int attempts = 4;
  std::chrono::milliseconds pause{1500};  ///< before another attempt
};

/// Why a GPU with this reading is not to be believed; empty: it is healthy.
std::string sickness(const CanaryReading& reading, double tflops_at_start, const CanaryRule& rule);

}  // namespace gemmtune
