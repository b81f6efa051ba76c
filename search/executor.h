// The device as the search sees it: a GPU behind a worker process, or the emulator.
#pragma once

#include <optional>
#include <string>

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
  /// One batch of back-to-back launches, as the protocol says.
  virtual SampleResult sample(int handle, Regime regime) = 0;
};

}  // namespace gemmtune
