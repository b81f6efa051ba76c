// The broken kernels in a real sweep on the emulator: real compile workers, real database.
#include <gtest/gtest.h>

#include "emulator/emulator_executor.h"
#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "tests/isolation/fault_kernels.h"
#include "tests/temp_folder.h"

namespace gemmtune {
namespace {

TEST(FaultsOnTheEmulator, AreContained) {
  TempFolder folder;
  const std::string healthy = folder / "healthy.db", broken = folder / "broken.db";
  std::optional<CompilePool> pool;
  try {
    pool.emplace(2);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  {
    EmulatorExecutor emulator(find_arch("sm_90a"));
    SweepSummary summary = run_fault_sweep(healthy, *pool, emulator);
    EXPECT_EQ(summary.outcomes.size(), 1u) << "without faults every variant is ok";
  }
  SabotagedCompiler saboteur(*pool);
  EmulatorExecutor emulator(find_arch("sm_90a"));
  run_fault_sweep(broken, saboteur, emulator);
  expect_contained(healthy, broken, saboteur, false);
}

}  // namespace
}  // namespace gemmtune
