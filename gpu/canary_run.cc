#include "gpu/canary_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace gemmtune {
namespace {

constexpr Shape kShape{4096, 4096, 1024};
constexpr uint64_t kSeed = 20240229;
constexpr int kLaunches = 16;       // a batch: 2 to 5 ms
constexpr double kPreheatMs = 100;  // from idle the SM clock takes a moment to rise
constexpr int kBatches = 8;

LaunchPlan canary_plan() {
  LaunchPlan plan;
  plan.grid = {static_cast<uint32_t>(kShape.n / 128), static_cast<uint32_t>(kShape.m / 128), 1};
  plan.block = {256, 1, 1};
  plan.args = {PointerArg{Operand::a}, PointerArg{Operand::b}, PointerArg{Operand::d},
               static_cast<int32_t>(kShape.n), static_cast<int32_t>(kShape.k)};
  return plan;
}

}  // namespace

CanaryReading run_canary(const SupportKernels& kernels, CUstream stream) {
  const CudaDriver& cuda = CudaDriver::get();
  ProblemClass cls;
  cls.out = DType::f32;
  // Integers as large as exact sums allow: every bit of the operands takes part.
  CheckSet set(kernels, stream, {cls, kShape}, 1, 0, Fill::rounding, kSeed);
  PreparedLaunch launch(kernels.canary_gemm, canary_plan(), set.addresses());
  ValidationCase checked = set.judge(launch);
  CanaryReading reading;
  if (!checked.passed())
    reading.wrong = checked.mismatches > 0 ? fmt::format("{} of {} elements, first {}", checked.mismatches,
                                                         checked.elements, checked.first_mismatch)
                                           : "two launches gave different bits, or memory around it changed";
  Event start, stop;
  double fastest_ms = 0, spent_ms = 0;
  for (int timed = 0; timed < kBatches;) {
    check(cuda.EventRecord(start.get(), stream), "cuEventRecord");
    for (int i = 0; i < kLaunches; ++i) launch.run(stream);
    check(cuda.EventRecord(stop.get(), stream), "cuEventRecord");
    check(cuda.EventSynchronize(stop.get()), "canary");
    float ms = 0;
    check(cuda.EventElapsedTime(&ms, start.get(), stop.get()), "cuEventElapsedTime");
    spent_ms += double(ms);
    if (spent_ms < kPreheatMs) continue;
    fastest_ms = timed++ == 0 ? double(ms) : std::min(fastest_ms, double(ms));
  }
  reading.tflops = flop(kShape) * kLaunches / (fastest_ms * 1e9);
  return reading;
}

}  // namespace gemmtune
