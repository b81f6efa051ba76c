#include "tool/ablation_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "gemm/error.h"
#include "gpu/gpu_executor.h"
#include "search/statistics.h"
#include "tool/output.h"
#include "tool/reservation.h"

namespace gemmtune {

std::vector<std::optional<double>> part_times_us(const GpuInfo& gpu, const Problem& problem,
                                                 const std::vector<Variant>& variants,
                                                 const std::vector<CompileResult>& compiled) {
  constexpr int kRounds = 11;
  GpuExecutor executor(gpu.index, std::make_unique<GpuLock>(gpu.record.uuid));
  DeviceReservation reservation(executor);
  if (StepResult begun = executor.begin_problem(problem, 1, problem.cls.beta ? 1 : 0);
      begun.outcome != Outcome::ok)
    throw EnvironmentError(begun.message);
  std::vector<std::vector<double>> samples(variants.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < variants.size(); ++i) {
    if (!compiled[i].ok) continue;
    CompiledKernel kernel;
    kernel.key = compiled[i].key;
    kernel.cubin = compiled[i].cubin;
    StepResult ready = executor.prepare(static_cast<int>(i), variants[i], kernel);
    if (ready.outcome == Outcome::ok) {
      order.push_back(i);
    } else {
      tell("not timed: {}\n", ready.message);
    }
  }
  std::mt19937_64 random(1);
  for (int round = 0; round < kRounds; ++round) {
    std::ranges::shuffle(order, random);
    for (size_t i : std::vector<size_t>(order)) {
      SampleResult got = executor.sample(static_cast<int>(i), Regime::burst);
      if (got.outcome == Outcome::ok) {
        samples[i].push_back(got.sample.time_us);
      } else {
        tell("not timed: {}\n", got.message);
        std::erase(order, i);
        samples[i].clear();
      }
    }
  }
  std::vector<std::optional<double>> medians(variants.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].empty()) continue;
    medians[i] = median(samples[i]);
  }
  return medians;
}

}  // namespace gemmtune
