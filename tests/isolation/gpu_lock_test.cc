// The GPU's lock among processes, and two sweeps on one database and one (fake) GPU.
#include "gpu/gpu_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "db/check.h"
#include "db/queries.h"
#include "gpu/compile_pool.h"
#include "gpu/gpu_executor.h"
#include "tests/isolation/fault_kernels.h"
#include "tests/temp_folder.h"
#include "tool/db_journal.h"

namespace gemmtune {
namespace {

using std::chrono::milliseconds;

class GpuLockTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("GEMMTUNE_LOCK_DIR", folder_.c_str(), 1); }
  void TearDown() override { ::unsetenv("GEMMTUNE_LOCK_DIR"); }
  /// Runs in a child; a byte on the pipe says that it is so far.
  struct Child {
    pid_t pid;
    int pipe;
    void await() const {
      char byte;
      EXPECT_EQ(::read(pipe, &byte, 1), 1) << "the child died first";
    }
    int end(int signal) const {
      if (signal != 0) ::kill(pid, signal);
      int status = 0;
      ::waitpid(pid, &status, 0);
      return status;
    }
  };
  static Child start(const std::function<void(const std::function<void()>&)>& work) {
    int pipes[2];
    EXPECT_EQ(::pipe(pipes), 0);
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a failed assertion leaves nobody behind
      try {
        work([&] { [[maybe_unused]] ssize_t written = ::write(pipes[1], "x", 1); });
      } catch (const std::exception& error) {
        fmt::print(stderr, "child: {}\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(pipes[1]);
    return {pid, pipes[0]};
  }
  static bool acquire_within(GpuLock& lock, milliseconds patience) {
    auto end = std::chrono::steady_clock::now() + patience;
    while (lock.try_acquire())
      if (std::chrono::steady_clock::now() > end)
        return false;
      else
        std::this_thread::sleep_for(milliseconds(1));
    return true;
  }

  TempFolder temp_;
  std::string folder_ = temp_.path();
};

TEST_F(GpuLockTest, OneHolderWhoIsNamedAndWhoseDeathFreesIt) {
  Child holder = start([](const auto& so_far) {
    GpuLock lock("GPU-1");
    if (!lock.try_acquire()) so_far();
    ::pause();
  });
  holder.await();
  GpuLock lock("GPU-1"), other("GPU-2");
  EXPECT_EQ(lock.try_acquire(), fmt::format("pid {}", holder.pid));
  EXPECT_EQ(other.try_acquire(), std::nullopt) << "another GPU has a lock of its own";
  holder.end(SIGKILL);
  EXPECT_TRUE(acquire_within(lock, milliseconds(2000)));
  EXPECT_TRUE(lock.held());
  struct stat status {};
  ASSERT_EQ(::stat((folder_ + "/gemmtune-GPU-1.lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666u) << "other users share the GPU";
}

/// kill -9 of a sweep: its GPU worker may live a moment longer, and while it does the GPU is not free.
TEST_F(GpuLockTest, AWorkerKeepsTheLockOfADeadCoordinator) {
  Child coordinator = start([](const auto& so_far) {
    GpuLock lock("GPU-1");
    if (lock.try_acquire()) return;
    if (::fork() == 0) {  // stands for the worker; inherits the lock
      ::sleep(1);
      ::_exit(0);
    }
    so_far();
    ::pause();
  });
  coordinator.await();
  coordinator.end(SIGKILL);
  GpuLock lock("GPU-1");
  EXPECT_NE(lock.try_acquire(), std::nullopt);
  EXPECT_TRUE(acquire_within(lock, milliseconds(5000)));
}

TEST_F(GpuLockTest, WhoWaitsComesBeforeWhoHadIt) {
  GpuLock mine("GPU-1");
  ASSERT_EQ(mine.try_acquire(), std::nullopt);
  Child waiter = start([](const auto& so_far) {
    GpuLock lock("GPU-1");
    if (!lock.try_acquire()) return;  // waits: first in line now
    so_far();
    while (lock.try_acquire()) std::this_thread::sleep_for(milliseconds(1));
    so_far();
    ::pause();
  });
  waiter.await();
  mine.release();
  ASSERT_NE(mine.try_acquire(), std::nullopt) << "the holder comes before the waiter";
  waiter.await();
  EXPECT_EQ(mine.try_acquire(), fmt::format("pid {}", waiter.pid));
  waiter.end(SIGKILL);
  EXPECT_TRUE(acquire_within(mine, milliseconds(2000)));
}

TEST_F(GpuLockTest, SurvivesACleanerOfTmp) {
  GpuLock first("GPU-1");
  std::filesystem::remove(folder_ + "/gemmtune-GPU-1.lock");
  ASSERT_EQ(first.try_acquire(), std::nullopt);
  GpuLock second("GPU-1");
  EXPECT_NE(second.try_acquire(), std::nullopt) << "both hold a lock on different files";
}

SweepOptions small_sweep() {
  SweepOptions o = fault_sweep_options();
  o.shapes = {{{512, 512, 512}, "", 1}, {{1024, 512, 512}, "", 1}, {{2048, 512, 512}, "", 1}};
  o.trials = 6;
  return o;
}

struct CountsBusy : SweepObserver {
  explicit CountsBusy(const std::function<void()>& first) : first_(first) {}
  int busy = 0;
  void device_busy(const std::string& holder) override {
    // Between taking the lock and writing the number a holder has no name.
    if (!holder.starts_with("pid ") && holder != "another process")
      throw std::runtime_error("a strange holder: " + holder);
    if (busy++ == 0) first_();
  }

 private:
  const std::function<void()>& first_;
};

/// The GPU is taken until both wait for it, and they go through the shapes in opposite orders: whoever comes
/// second at the first hand-over finds a shape that nobody has done. (In the same order each could find the
/// other's work done, turn after turn.)
TEST_F(GpuLockTest, TwoSweepsOnOneDatabaseTakeTurnsAndReadersNeverWait) {
  ::setenv("GEMMTUNE_NVRTC", GEMMTUNE_FAKE_NVRTC, 1);
  const std::string log = folder_ + "/log", path = folder_ + "/both.db";
  ::setenv("FAKE_GPU_LOG", log.c_str(), 1);
  { Store made(path); }
  Child holder = start([](const auto& so_far) {
    GpuLock lock("GPU-fake");
    if (!lock.try_acquire()) so_far();
    ::pause();
  });
  holder.await();
  std::vector<Child> children;
  for (bool backwards : {false, true})
    children.push_back(start([&, backwards](const auto& so_far) {
      SweepOptions options = small_sweep();
      if (backwards) std::reverse(options.shapes.begin(), options.shapes.end());
      CompilePool pool(1);
      GpuExecutor gpu(0, std::make_unique<GpuLock>("GPU-fake"));
      Store store(path);
      DbJournal journal(store, gpu.device(), store.start_sweep("one of two", 1, "test"));
      CountsBusy observer(so_far);
      std::atomic<bool> stop{false};
      SweepSummary summary = run_sweep(options, pool, &gpu, journal, observer, stop);
      std::ofstream(fmt::format("{}/busy-{}", folder_, ::getpid())) << observer.busy;
      if (!summary.without_winner.empty()) throw std::runtime_error("a shape has no winner");
    }));
  for (const Child& child : children) child.await();
  holder.end(SIGKILL);
  // Meanwhile `best`, which waits for nobody: a lock would be an error at once.
  int reads = 0;
  double slowest_ms = 0;
  size_t alive = children.size();
  std::vector<int> ended(children.size(), 0);
  while (alive > 0) {
    auto begin = std::chrono::steady_clock::now();
    Store reader(path, OpenMode::read_only);
    reader.connection().execute("PRAGMA busy_timeout = 0");
    EXPECT_NO_THROW(best(reader, BestFilter()));
    slowest_ms =
        std::max(slowest_ms,
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    ++reads;
    for (size_t i = 0; i < children.size(); ++i) {
      int status = 0;
      if (ended[i] || ::waitpid(children[i].pid, &status, WNOHANG) == 0) continue;
      EXPECT_EQ(status, 0);
      ended[i] = 1;
      --alive;
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
  ::unsetenv("FAKE_GPU_LOG");
  ::unsetenv("GEMMTUNE_NVRTC");

  // Between a worker's first request of a problem ("begin") and its last ("end") there is no request of the
  // other.
  std::ifstream file(log);
  std::string pid, op, what, owner;
  long long at = 0;
  int turns = 0, changes = 0, requests = 0;
  std::string last_owner;
  while (file >> pid >> op >> what >> at) {
    ++requests;
    if (op == "canary") {  // a worker's first request
      EXPECT_TRUE(owner.empty() || owner == pid) << "the yardstick is taken while another measures";
      continue;
    }
    if (op == "begin" && what == "begin") {
      EXPECT_EQ(owner, "") << "two problems at once";
      owner = pid;
      ++turns;
      changes += !last_owner.empty() && last_owner != pid;
      last_owner = pid;
    }
    EXPECT_EQ(pid, owner) << op;
    if (op == "end" && what == "end") owner.clear();
  }
  int busy = 0;
  for (const Child& child : children) {
    int count = 0;
    std::ifstream(fmt::format("{}/busy-{}", folder_, child.pid)) >> count;
    busy += count;
  }
  fmt::print(
      "  {} requests in {} turns, {} changes of hands, {} waits told; {} reads meanwhile, slowest {:.1f} "
      "ms\n",
      requests, turns, changes, busy, reads, slowest_ms);
  EXPECT_GE(turns, 3) << "one a shape at least";
  EXPECT_GT(changes, 0);
  EXPECT_GE(busy, 3) << "each at first, and one of them again behind the other";
  EXPECT_GT(reads, 20);
  Store store(path);
  EXPECT_TRUE(check_integrity(store).empty());
  std::vector<StoredTrial> trials = store.trials({});
  EXPECT_EQ(trials.size(), 18u) << "each trial once";
  for (const StoredTrial& stored : trials) EXPECT_EQ(stored.trial.outcome, Outcome::ok);
}

}  // namespace
}  // namespace gemmtune
