// One GEMM problem in emulated memory: operands of a fill, the output, and what it should be.
#pragma once

#include <map>
#include <vector>

#include "emulator/emulator.h"
#include "gemm/fill.h"
#include "kernel_templates/family.h"
#include "search/trial.h"

namespace gemmtune {

/// `how` with all that the plan says: kernel, grid, clusters, shared memory, parameters.
emulator::LaunchConfig planned_launch(emulator::LaunchConfig how, const Variant& variant,
                                      const LaunchPlan& plan, const std::map<Operand, uint64_t>& addresses);

class EmulatedGemm {
 public:
  /// Fills A, B and (beta != 0) C and computes the reference.
  EmulatedGemm(const Problem& problem, Fill fill, float alpha, float beta);

  /// Runs a variant of the problem's class on an output full of NaN, from the second time on full of other
  /// numbers, and with the workspace as the last launch left it. `how` gives schedule, trace and limits;
  /// kernel, grid, parameters and SM count are filled in. `sm_count`: the grid is sized for that many.
  emulator::LaunchResult launch(emulator::Module& module, const Variant& variant, int sm_count,
                                emulator::LaunchConfig how);

  /// Raw bytes of an operand; empty if the class has none.
  std::vector<uint8_t> bytes(Operand operand) const;
  std::vector<uint8_t> output() const { return bytes(Operand::d); }
  /// Compares as the GPU does: integer fills bit for bit, the normal fill within its bound.
  ValidationCase compare(const std::vector<uint8_t>& output) const;
  const Reference& reference() const { return reference_; }

 private:
  uint64_t upload(const std::vector<float>& values, DType type);

  Problem problem_;
  Fill fill_;
  float alpha_, beta_;
  emulator::Device device_;
  std::map<Operand, uint64_t> addresses_;
  std::map<Operand, size_t> bytes_;
  int64_t workspace_bytes_ = 0;
  int launches_ = 0;
  Reference reference_;
};

}  // namespace gemmtune
