// Deliberately broken kernels: sm90_gemm with one change each. The same sources run through a real sweep on a
// GPU (tests/gpu/fault_sweep_test.cc) and on the emulator (tests/isolation/fault_emulator_test.cc).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/compiler.h"
#include "search/sweep.h"

namespace gemmtune {

struct FaultKernel {
  const char* name;
  /// Pairs of text in the rendered source and what replaces it.
  std::vector<std::pair<std::string_view, std::string_view>> changes;
  /// What may become of it. More than one where the hardware may choose: a fault or a hang.
  std::vector<Outcome> gpu, emulator;
};

const std::vector<FaultKernel>& fault_kernels();

/// A rendered source with a fault put in. Throws std::logic_error if the template's text has changed.
std::string broken_source(std::string source, const FaultKernel& fault);

/// A compiler that is given good sources and breaks them on their way: the second distinct one by the first
/// fault, and so on; the rest stay as they are. The sweep knows nothing of it. Everything is compiled before
/// the first result is given out, so that no trial's time but the first one's has a compilation in it.
class SabotagedCompiler final : public Compiler {
 public:
  explicit SabotagedCompiler(Compiler& real) : real_(real) {}
  Toolchain toolchain() const override { return real_.toolchain(); }
  void submit(CompileRequest request) override;
  CompileResult take(const std::string& key) override;
  bool poll(std::chrono::milliseconds patience) override { return real_.poll(patience); }
  /// The fault that a kernel got, or nullptr.
  const FaultKernel* fault_of(const std::string& key) const;

 private:
  Compiler& real_;
  std::vector<std::string> keys_;  ///< in the order given
};

/// The sweep that they hide in: one shape, every variant of a corner of sm_90a's space, clusters of two so
/// that a peer can leave.
SweepOptions fault_sweep_options();

/// Runs the sweep into the database at `path`.
SweepSummary run_fault_sweep(const std::string& path, Compiler& compiler, Executor& executor);

/// Compares a sweep with faults against one without: each fault has one of its outcomes, none is a winner or
/// in a tie set, and every other trial is there with the same outcome and the same validation. Prints the
/// table, with the seconds that each fault cost beyond a healthy trial.
void expect_contained(const std::string& healthy_path, const std::string& path,
                      const SabotagedCompiler& saboteur, bool on_gpu);

}  // namespace gemmtune
