// The sweep: shapes in, trials out. Knows compiler, device, store and display only as interfaces.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gemm/shape_list.h"
#include "search/compiler.h"
#include "search/executor.h"
#include "search/journal.h"
#include "search/space.h"
#include "search/strategy.h"

namespace gemmtune {

/// What a display may want to know; it overrides what it shows. All calls come from the sweep's thread.
class SweepObserver {
 public:
  virtual ~SweepObserver() = default;
  virtual void planned(size_t /*trials*/, size_t /*kernels*/, size_t /*cached*/) {}
  virtual void compiling(size_t /*done*/, size_t /*total*/) {}
  virtual void problem_started(size_t /*index*/, size_t /*count*/, const ListedShape& /*shape*/,
                               size_t /*candidates*/) {}
  /// The device is in another's use; the sweep waits.
  virtual void device_busy(const std::string& /*holder*/) {}
  virtual void trial_finished(const Trial& /*trial*/) {}
  virtual void measuring(size_t /*samples_done*/, bool /*final_rounds*/) {}
  /// A sample was marked and is taken again.
  virtual void disturbed(SampleMark) {}
  virtual void problem_finished(const ListedShape& /*shape*/, std::optional<double> /*winner_us*/,
                                size_t /*ok*/, size_t /*candidates*/) {}
};

struct SweepOptions {
  const KernelFamily* family = nullptr;
  const ArchSpec* arch = nullptr;
  ProblemClass cls;
  std::vector<ListedShape> shapes;
  Restrictions restrictions;
  const Strategy* strategy = nullptr;
  int trials = 32;  ///< per shape
  std::optional<std::chrono::seconds> time_budget;
  Regime regime = Regime::burst;  ///< sustained: finalists of the burst are then measured sustained, too
  bool warm_l2 = false;
  uint64_t seed = 1;         ///< of the order in which candidates are measured
  uint64_t search_seed = 1;  ///< of what the strategy draws
  float alpha = 1, beta = 0;
  /// Before a marked sample is taken again: heat or a neighbour may pass.
  std::chrono::milliseconds repeat_pause{500};

  Timing timing(Regime of) const { return {.regime = of, .warm_l2 = warm_l2}; }
};

/// Where the wall time of a sweep went, seconds of the sweep's own thread.
struct WallTime {
  double total_s = 0;
  double compiler_s = 0;  ///< waiting for a kernel
  double operands_s = 0;  ///< allocating, filling, computing references
  double load_s = 0;
  double validate_s = 0;
  double time_s = 0;  ///< the protocol's pauses included
};

struct SweepSummary {
  std::map<Outcome, int> outcomes;  ///< of this run's trials and those it found
  int kernels_compiled = 0, kernels_cached = 0;
  std::vector<double> compile_ms;           ///< of this run
  int trials_resumed = 0;                   ///< found in the journal
  std::vector<std::string> without_winner;  ///< shapes, only where times are taken
  std::vector<std::string> skipped;         ///< shapes that have no legal configuration, with the reason
  size_t samples = 0;                       ///< taken in this run, that count
  std::map<SampleMark, int> marked;         ///< samples that did not count and were repeated
  std::vector<std::string> disturbed;       ///< shapes given up because no repetition helped
  WallTime wall;
  bool interrupted = false;
  bool out_of_time = false;
};

/// Runs until done, out of time, or `stop`. Without an executor the outcome is `compiled` at best;
/// one that takes no times leaves trials `ok` without a measurement, and no winners.
/// Throws EnvironmentError when compiler or device are gone for good; what was recorded stays.
SweepSummary run_sweep(const SweepOptions& options, Compiler& compiler, Executor* executor, Journal& journal,
                       SweepObserver& observer, const std::atomic<bool>& stop);

}  // namespace gemmtune
