// The broken kernels in a real sweep on the GPU: real compile workers, GPU worker and database.
#include <fmt/format.h>

#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/isolation/fault_kernels.h"
#include "tests/temp_folder.h"
#include "tool/db_journal.h"

namespace gemmtune {
namespace {

class FaultSweep : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (family_->name() != "sm90_gemm") GTEST_SKIP() << "the broken kernels are made from sm90_gemm";
  }
  std::string path(const char* name) const { return folder_ / name; }

  TempFolder folder_;
};

TEST_F(FaultSweep, EveryFaultIsContained) {
  CompilePool pool(8);
  {
    GpuExecutor gpu(gpu_.index);
    SweepSummary summary = run_fault_sweep(path("healthy.db"), pool, gpu);
    EXPECT_EQ(summary.outcomes.size(), 1u) << "without faults every variant is ok";
    EXPECT_EQ(gpu.canary_readings().size(), 1u);
  }
  SabotagedCompiler saboteur(pool);
  GpuExecutor gpu(gpu_.index);
  run_fault_sweep(path("broken.db"), saboteur, gpu);
  expect_contained(path("healthy.db"), path("broken.db"), saboteur, true);
  fmt::print("  canary, TFLOP/s: at the start {:.1f}, after faults", gpu.canary_readings().front().tflops);
  for (size_t i = 1; i < gpu.canary_readings().size(); ++i)
    fmt::print(" {:.1f}", gpu.canary_readings()[i].tflops);
  fmt::print("\n");
  EXPECT_GT(gpu.canary_readings().size(), 4u);
}

/// A canary that can never be fast enough stands for a GPU that lost its speed: the sweep ends, its rows
/// stay.
TEST_F(FaultSweep, ASickGpuEndsTheSweepWithItsRowsKept) {
  CompilePool pool(8);
  SabotagedCompiler saboteur(pool);
  CanaryRule rule;
  rule.slowest_share = 1.5;
  rule.attempts = 2;
  GpuExecutor gpu(gpu_.index, {}, rule);
  try {
    run_fault_sweep(path("sick.db"), saboteur, gpu);
    ADD_FAILURE() << "a sick GPU was believed";
  } catch (const EnvironmentError& error) {
    fmt::print("  {}\n", error.what());
    EXPECT_NE(std::string(error.what()).find("is sick since"), std::string::npos) << error.what();
  }
  Store store(path("sick.db"), OpenMode::read_only);
  std::vector<StoredTrial> trials = store.trials({});
  ASSERT_FALSE(trials.empty());
  EXPECT_TRUE(trials.back().trial.outcome == Outcome::crashed ||
              trials.back().trial.outcome == Outcome::timed_out)
      << "the last row is the fault itself";
}

}  // namespace
}  // namespace gemmtune
