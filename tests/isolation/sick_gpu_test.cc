// A sweep on a (fake) GPU that falls ill behind a fault: it ends, and what was measured is kept.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "db/check.h"
#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "gpu/gpu_executor.h"
#include "tests/isolation/fault_kernels.h"
#include "tests/temp_folder.h"
#include "tool/db_journal.h"

namespace gemmtune {
namespace {

/// A compiler whose third kernel kills its GPU worker (fake_gpu.h).
class DeadlyThird final : public Compiler {
 public:
  explicit DeadlyThird(Compiler& real) : real_(real) {}
  Toolchain toolchain() const override { return real_.toolchain(); }
  void submit(CompileRequest request) override { real_.submit(std::move(request)); }
  CompileResult take(const std::string& key) override {
    CompileResult result = real_.take(key);
    if (++taken_ == 3) result.cubin = "die at validate";
    return result;
  }
  bool poll(std::chrono::milliseconds patience) override { return real_.poll(patience); }

 private:
  Compiler& real_;
  int taken_ = 0;
};

class SickGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("GEMMTUNE_NVRTC", GEMMTUNE_FAKE_NVRTC, 1);
    ::setenv("FAKE_GPU_CANARY", (folder_ / "canary").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("GEMMTUNE_NVRTC");
    ::unsetenv("FAKE_GPU_CANARY");
  }
  TempFolder folder_;
};

TEST_F(SickGpuTest, TheSweepEndsWithItsRowsKept) {
  std::ofstream(folder_ / "canary") << "100\n50\n50\n";
  CanaryRule rule;
  rule.attempts = 2;
  rule.pause = std::chrono::milliseconds(1);
  const std::string path = folder_ / "sick.db";
  CompilePool pool(1);
  DeadlyThird compiler(pool);
  GpuExecutor gpu(0, {}, rule);
  try {
    run_fault_sweep(path, compiler, gpu);
    ADD_FAILURE() << "a sick GPU was believed";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("is sick since validate"), std::string::npos) << error.what();
  }
  Store store(path, OpenMode::read_only);
  std::vector<StoredTrial> trials = store.trials({});
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0].trial.outcome, Outcome::ok);
  EXPECT_EQ(trials[1].trial.outcome, Outcome::ok);
  EXPECT_EQ(trials[2].trial.outcome, Outcome::crashed) << "the last row is the fault itself";
  EXPECT_TRUE(check_integrity(store).empty());
}

}  // namespace
}  // namespace gemmtune
