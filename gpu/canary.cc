#include "gpu/canary.h"

#include <fmt/format.h>

namespace gemmtune {

std::string sickness(const CanaryReading& reading, double tflops_at_start, const CanaryRule& rule) {
  if (!reading.wrong.empty()) return fmt::format("the canary GEMM is wrong: {}", reading.wrong);
  if (reading.tflops >= rule.slowest_share * tflops_at_start) return "";
  return fmt::format(
      "the canary GEMM runs at {:.1f} TFLOP/s, at the start of this run it was {:.1f} (at least {:.0f} % "
      "of that are healthy)",
      reading.tflops, tflops_at_start, 100 * rule.slowest_share);
}

}  // namespace gemmtune
