// Compile workers with a compiler that breaks on demand (tests/tool/fake_nvrtc.cc): each failure is one
// result, and memory does not grow.
#include "gpu/compile_pool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace gemmtune {
namespace {

using std::chrono::milliseconds;

class CompilePoolTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("GEMMTUNE_NVRTC", GEMMTUNE_FAKE_NVRTC, 1); }
  void TearDown() override {
    for (const char* name : {"GEMMTUNE_NVRTC", "FAKE_NVRTC_HANG", "FAKE_NVRTC_EAT", "FAKE_NVRTC_LEAK_KIB"})
      ::unsetenv(name);
  }
};

CompileRequest request(const std::string& key, const std::string& text) {
  return {key, "namespace knob {}  // " + text, "sm_100a"};
}

TEST_F(CompilePoolTest, ACompilationBeyondItsDeadlineIsARow) {
  ::setenv("FAKE_NVRTC_HANG", "endless", 1);
  CompilePool::Limits limits;
  limits.deadline = milliseconds(2000);
  CompilePool pool(2, limits);
  for (int i = 0; i < 6; ++i) pool.submit(request(std::to_string(i), i % 3 == 1 ? "endless" : "good"));
  for (int i = 0; i < 6; ++i) {
    CompileResult result = pool.take(std::to_string(i));
    EXPECT_EQ(result.ok, i % 3 != 1) << i << ": " << result.log;
    if (i % 3 != 1) continue;
    EXPECT_EQ(result.log, "the compiler did not finish within 2 s");
    EXPECT_GE(result.compile_ms, 2000);
  }
}

#ifndef __SANITIZE_ADDRESS__  // no cap there
TEST_F(CompilePoolTest, ACompilationBeyondItsMemoryIsARow) {
  ::setenv("FAKE_NVRTC_EAT", "hungry", 1);
  CompilePool::Limits limits;
  limits.memory_bytes = int64_t{1} << 30;
  CompilePool pool(1, limits);
  for (int i = 0; i < 3; ++i) pool.submit(request(std::to_string(i), i == 1 ? "hungry" : "good"));
  EXPECT_TRUE(pool.take("0").ok);
  CompileResult hungry = pool.take("1");
  EXPECT_FALSE(hungry.ok);
  EXPECT_EQ(hungry.log, "the compiler crashed: killed by signal 6 (Aborted)");
  EXPECT_TRUE(pool.take("2").ok);
}
#endif

int64_t resident_kib(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  return 0;
}

/// Largest worker during `count` compilations by a compiler that leaks 512 KiB each time.
int64_t largest_kib(int count, int recycle_after) {
  ::setenv("FAKE_NVRTC_LEAK_KIB", "512", 1);
  CompilePool::Limits limits;
  limits.recycle_after = recycle_after;
  CompilePool pool(1, limits);
  int64_t largest = 0;
  for (int i = 0; i < count; ++i) {
    pool.submit(request(std::to_string(i), "good"));
    EXPECT_TRUE(pool.take(std::to_string(i)).ok);
    for (int pid : pool.worker_pids()) largest = std::max(largest, resident_kib(pid));
  }
  return largest;
}

TEST_F(CompilePoolTest, RecycledWorkersDoNotGrow) {
  int64_t few = largest_kib(40, 40), many = largest_kib(2000, 40), never = largest_kib(400, 1 << 30);
  fmt::print(
      "  leaking compiler, largest worker: {} MiB in 40 compilations, {} MiB in 2000 recycled every 40, {} "
      "MiB "
      "in 400 never recycled\n",
      few >> 10, many >> 10, never >> 10);
  EXPECT_LT(many, few + (8 << 10));
  EXPECT_GT(never, few + (100 << 10)) << "the leak is not seen: this test proves nothing";
}

}  // namespace
}  // namespace gemmtune
