// The device as the search sees it: a GPU behind a worker process, or the emulator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/trial.h"

namespace gemmtune {

/// What became of one step of a trial.
struct StepResult {
  Outcome outcome = Outcome::ok;
  std::string message;
};

struct ValidationResult : StepResult {
  Validation validation;
};

struct SampleResult : StepResult {
  Sample sample;
};

/// Two batches taken in turn; zeros where there are no graphs.
struct GraphResult : StepResult {
  double plain_us = 0, graph_us = 0;  ///< per launch
};

/// One of the vendor library's own choices for a problem.
struct LibraryAlgorithm {
  std::string name;  ///< the library's ids: "algo 66, tile 18, stages 35, split-K 1"
  int64_t workspace_bytes = 0;
};

struct LibraryResult : StepResult {
  std::string version;                       ///< "cuBLASLt 13.0.2"
  std::vector<LibraryAlgorithm> algorithms;  ///< its first choice first
};

/// Runs variants of one problem at a time. A device that hangs or faults costs the step that did it
/// (timed_out, crashed); the executor recovers by itself. Throws EnvironmentError if it cannot.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual DeviceRecord device() const = 0;
  /// False for the emulator, which proves but never times.
  virtual bool takes_times() const { return true; }
  /// True if prepare() wants CompiledKernel::ptx.
  virtual bool runs_ptx() const { return false; }

  /// Asks for the device alone, for as long as one problem takes; nothing else may be called without.
  /// Nothing: it is ours. Otherwise who has it: ask again later.
  virtual std::optional<std::string> reserve() { return std::nullopt; }
  /// Forgets the problem and lets others have the device.
  virtual void release() noexcept {}

  /// Allocates and fills operands, computes references. Forgets variants of the problem before. Not ok: this
  /// problem does not fit the device.
  virtual StepResult begin_problem(const Problem& problem, float alpha, float beta) = 0;
  /// Loads a kernel under `handle`.
  virtual StepResult prepare(int handle, const Variant& variant, const CompiledKernel& kernel) = 0;
  /// Proves a prepared variant right: proxy shapes and, on a GPU, the problem's own shape, all fills.
  virtual ValidationResult validate(int handle) = 0;
  /// One batch of back-to-back launches, as the protocol says. `warm_l2`: always the same operand set, which
  /// L2 keeps as far as it fits; else sets are rotated so that none is found there.
  virtual SampleResult sample(int handle, Regime regime, bool warm_l2 = false) = 0;
  /// The same launches plain and replayed by a CUDA graph.
  virtual GraphResult sample_graph(int, bool) { return {}; }

  /// Makes the vendor library's algorithms for this problem ready under `first_handle`, `first_handle + 1`
  /// and so on, at most `at_most`; validate() and sample() take them like variants. Not ok where there is no
  /// library.
  virtual LibraryResult prepare_library(int, int) {
    return {{Outcome::launch_failed, "no vendor library runs here"}, "", {}};
  }
};

}  // namespace gemmtune
