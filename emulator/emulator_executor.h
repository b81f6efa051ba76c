// The emulator as the search sees it: an Executor that validates on the CPU and takes no times.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/executor.h"

namespace gemmtune {

class EmulatorExecutor final : public Executor {
 public:
  explicit EmulatorExecutor(const ArchSpec& arch);

  DeviceRecord device() const override { return device_; }
  bool takes_times() const override { return false; }
  bool runs_ptx() const override { return true; }
  StepResult begin_problem(const Problem& problem, float alpha, float beta) override;
  StepResult prepare(int handle, const Variant& variant, const CompiledKernel& kernel) override;
  /// The proxy shapes, the integer and the normal fills, under the schedules eager and random. Once for each
  /// variant.
  ValidationResult validate(int handle) override;
  SampleResult sample(int handle, Regime regime, bool warm_l2 = false) override;

 private:
  struct Loaded {
    Variant variant;
    std::string ptx;
  };
  ValidationResult prove(const Loaded& loaded) const;

  DeviceRecord device_;
  Problem problem_;
  float alpha_ = 1, beta_ = 0;
  std::map<int, Loaded> loaded_;
  std::map<std::string, ValidationResult> proven_;  ///< by class and config
};

}  // namespace gemmtune
