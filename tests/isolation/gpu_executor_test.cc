// The executor against a worker that breaks on demand (fake_gpu.h): deadlines, SIGKILL, recovery, the canary.
#include "gpu/gpu_executor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "gemm/error.h"
#include "tests/temp_folder.h"

namespace gemmtune {
namespace {

using std::chrono::milliseconds;

class GpuExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("FAKE_GPU_CANARY", canary_file_.c_str(), 1);
    deadlines_.validate = deadlines_.sample = deadlines_.prepare = milliseconds(1000);
    deadlines_.canary = milliseconds(1000);
    rule_.pause = milliseconds(1);
  }
  void TearDown() override { ::unsetenv("FAKE_GPU_CANARY"); }

  void canaries(const std::string& lines) { std::ofstream(canary_file_) << lines; }

  GpuExecutor executor() { return GpuExecutor(0, deadlines_, rule_); }
  static Variant variant() {
    const ArchSpec& arch = find_arch("sm_90a");
    const KernelFamily& family = family_for(arch);
    return {&family, &arch, {}, family.default_config()};
  }
  static CompiledKernel kernel(const std::string& does) {
    CompiledKernel kernel;
    kernel.ok = true;
    kernel.cubin = does;
    return kernel;
  }
  static Problem problem() { return {{}, {128, 128, 128}}; }

  TempFolder folder_;
  std::string canary_file_ = folder_ / "canary";
  GpuExecutor::Deadlines deadlines_;
  CanaryRule rule_;
};

struct Misdeed {
  const char* kernel;
  Outcome outcome;
  const char* message;
};

TEST_F(GpuExecutorTest, EachMisdeedCostsItsStepOnly) {
  const Misdeed misdeeds[] = {
      {"hang at validate", Outcome::timed_out, "validate did not finish within 1 s; the worker was killed"},
      {"stop at validate", Outcome::timed_out, "validate did not finish within 1 s; the worker was killed"},
      {"die at validate", Outcome::crashed,
       "validate: the worker died (killed by signal 11 (Segmentation fault))"},
      {"garbage at validate", Outcome::crashed, "validate: the worker died (killed by signal 9 (Killed))"},
      {"lost at validate", Outcome::crashed, "illegal address"},
      {"wrong at validate", Outcome::wrong_result, "1 element wrong"},
  };
  for (const Misdeed& misdeed : misdeeds) {
    SCOPED_TRACE(misdeed.kernel);
    GpuExecutor gpu = executor();
    ASSERT_EQ(gpu.begin_problem(problem(), 1, 0).outcome, Outcome::ok);
    ASSERT_EQ(gpu.prepare(0, variant(), kernel("good")).outcome, Outcome::ok);
    ASSERT_EQ(gpu.prepare(1, variant(), kernel(misdeed.kernel)).outcome, Outcome::ok);
    ValidationResult result = gpu.validate(1);
    EXPECT_EQ(result.outcome, misdeed.outcome);
    EXPECT_EQ(result.message, misdeed.message);
    // The one prepared before is there again, in a fresh worker, without a word from the caller.
    SampleResult sample = gpu.sample(0, Regime::burst);
    EXPECT_EQ(sample.outcome, Outcome::ok) << sample.message;
    bool fault = misdeed.outcome != Outcome::wrong_result;
    EXPECT_EQ(gpu.canary_readings().size(), fault ? 2u : 1u)
        << "a canary at the start and behind every fault";
  }
}

TEST_F(GpuExecutorTest, FaultsInOtherSteps) {
  GpuExecutor gpu = executor();
  ASSERT_EQ(gpu.begin_problem(problem(), 1, 0).outcome, Outcome::ok);
  EXPECT_EQ(gpu.prepare(0, variant(), kernel("die at prepare")).outcome, Outcome::crashed);
  ASSERT_EQ(gpu.prepare(1, variant(), kernel("hang at sample")).outcome, Outcome::ok);
  EXPECT_EQ(gpu.validate(1).outcome, Outcome::ok);
  SampleResult sample = gpu.sample(1, Regime::burst);
  EXPECT_EQ(sample.outcome, Outcome::timed_out);
  EXPECT_EQ(sample.sample.time_us, 0);
}

/// A time whose kernel was wrong right behind it is no time.
TEST_F(GpuExecutorTest, ASampleNeedsARightResultBehindIt) {
  GpuExecutor gpu = executor();
  ASSERT_EQ(gpu.begin_problem(problem(), 1, 0).outcome, Outcome::ok);
  ASSERT_EQ(gpu.prepare(0, variant(), kernel("wrong at recheck")).outcome, Outcome::ok);
  EXPECT_EQ(gpu.validate(0).outcome, Outcome::ok);
  EXPECT_EQ(gpu.sample(0, Regime::burst).outcome, Outcome::wrong_result);
}

/// A hung worker does not read; a cubin larger than the socket's buffer must not block the coordinator.
TEST_F(GpuExecutorTest, AStoppedWorkerDoesNotBlockASend) {
  WorkerProcess worker("gpu", "0");
  nlohmann::json hello;
  ASSERT_EQ(worker.channel().send({{"support", to_blob("")}}, milliseconds(5000)),
            Channel::Received::message);
  ASSERT_EQ(worker.channel().receive(hello, milliseconds(5000)), Channel::Received::message);
  ::kill(worker.pid(), SIGSTOP);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(worker.channel().send({{"op", to_blob(std::string(8 << 20, 'x'))}}, milliseconds(200)),
            Channel::Received::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
  EXPECT_EQ(worker.kill(), "killed by signal 9 (Killed)");
}

TEST_F(GpuExecutorTest, ADyingGpuEndsTheRunBehindTheRecordedFault) {
  struct Case {
    const char* canaries;
    const char* why;  ///< empty: healthy
  };
  const Case cases[] = {
      {"100\n90\n", ""},
      {"100\n50\n70\n99\n", ""},      // a moment to clock up
      {"100\nwrong\n100\n", ""},      // a disturbed reading
      {"100\nhang\ndie\n100\n", ""},  // it hung once more, then came back
      {"100\n84\n84\n84\n84\n", "84.0 TFLOP/s"},
      {"100\nwrong\nwrong\nwrong\nwrong\n", "1 of 16 elements"},
      {"100\nhang\nhang\nhang\nhang\n", "hung or died"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.canaries);
    canaries(c.canaries);
    GpuExecutor gpu = executor();
    ASSERT_EQ(gpu.begin_problem(problem(), 1, 0).outcome, Outcome::ok);
    ASSERT_EQ(gpu.prepare(0, variant(), kernel("die at validate")).outcome, Outcome::ok);
    // The fault itself is an outcome, whatever the canary will say: its row can be written.
    EXPECT_EQ(gpu.validate(0).outcome, Outcome::crashed);
    if (*c.why == '\0') {
      EXPECT_EQ(gpu.prepare(1, variant(), kernel("good")).outcome, Outcome::ok);
      EXPECT_EQ(gpu.canary_readings().size(), 2u);
      continue;
    }
    try {
      gpu.prepare(1, variant(), kernel("good"));
      ADD_FAILURE() << "a sick GPU was believed";
    } catch (const EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find(c.why), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("GPU-fake) is sick since validate"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(GpuExecutorTest, AWrongCanaryAtTheStartEndsTheRun) {
  canaries("wrong\nwrong\nwrong\nwrong\n");
  GpuExecutor gpu = executor();
  EXPECT_THROW(gpu.begin_problem(problem(), 1, 0), EnvironmentError);
}

/// Stands for a process in uninterruptible sleep: one that SIGKILL has not reached. The wait is bounded.
TEST(Reap, GivesUpOnAProcessThatStays) {
  pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_EQ(reap(child, milliseconds(50)), std::nullopt);
  ::kill(child, SIGKILL);
  EXPECT_EQ(reap(child, milliseconds(5000)), "killed by signal 9 (Killed)");
  EXPECT_EQ(reap(child, milliseconds(5000)), "already gone");
}

}  // namespace
}  // namespace gemmtune
