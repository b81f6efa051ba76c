// One timing sample of protocol p1 (docs/measuring.md), with what NVML says beside it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/cuda_driver.h"
#include "gpu/launcher.h"
#include "gpu/neighbours.h"
#include "gpu/nvml.h"
#include "search/executor.h"

namespace gemmtune {

/// One candidate's launches: the same work on each operand set.
struct Rotation {
  std::vector<std::unique_ptr<Launch>> sets;
  double estimate_us = 0;  ///< of one launch; 0: not yet known
  size_t next = 0;
};

class Sampler {
 public:
  /// `processes_before`: those that NVML saw before this process made its context.
  Sampler(CUstream stream, std::string uuid, const std::vector<unsigned>& processes_before);

  /// The next burst pre-heats first.
  void new_problem() { preheated_ = false; }

  /// Each throws CudaError when a launch or what it waits for fails. `warm`: the first operand set alone.
  Sample burst(Rotation& candidate, bool warm);
  Sample sustained(Rotation& candidate, bool warm);
  /// A plain batch, then the same launches as a graph.
  GraphResult graph_pair(Rotation& candidate, bool warm);

 private:
  void run(Rotation& candidate, int count, bool warm) const;
  /// Mean time of one of `count` launches.
  double timed_us(Rotation& candidate, int count, bool warm) const;
  void estimate(Rotation& candidate, bool warm) const;
  void preheat(Rotation& candidate, bool warm);
  /// Clock, power, temperature, event reasons, and the mark.
  void observe(Sample& sample);

  CUstream stream_;
  CUevent start_ = nullptr, stop_ = nullptr;
  std::string uuid_;
  Nvml nvml_;
  Neighbours neighbours_;
  bool preheated_ = false;
};

}  // namespace gemmtune
