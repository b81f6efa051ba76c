// kill -9 at any moment, and several processes on one file.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "db/check.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

class DurabilityTest : public DbTest {
 protected:
  static Trial numbered(int i) {
    return ok_trial(problem(1 + i), "stages=4", std::vector<double>(20, 10.0 + i));
  }
  /// Until killed. Opening (at first: creating) is part of what gets killed; each acknowledged trial is a
  /// byte.
  void write_trials(int first, int pipe) {
    Store store(path());
    int64_t device = store.device_id(h200());
    for (int i = first; store.record_trial(numbered(i), device).inserted; ++i)
      if (write(pipe, "x", 1) != 1) return;
  }
  int64_t count(const char* table) {
    Store store(path(), OpenMode::read_only);
    return query_integer(store.connection(), std::string("SELECT count(*) FROM ") + table);
  }
};

TEST_F(DurabilityTest, KillLosesAtMostTheTrialInFlight) {
  constexpr int kRounds = 60;
  std::mt19937 random(20240229);
  int64_t before = 0;
  int died_mid_transaction = 0;
  for (int round = 0; round < kRounds; ++round) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
      try {
        write_trials(static_cast<int>(before), pipes[1]);
      } catch (const std::exception&) {
      }
      _exit(5);
    }
    close(pipes[1]);
    // By turns at a moment since the start, which may be in the middle of opening, and at one behind a number
    // of trials, however slow the machine is.
    int64_t acknowledged = before;
    char buffer[4096];
    const bool since_start = round % 2 == 0;
    int await = since_start ? 0 : std::uniform_int_distribution(1, 8)(random);
    for (; await > 0 && read(pipes[0], buffer, 1) == 1; --await) ++acknowledged;
    int patience_us = since_start ? 30'000 : 1'000;
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution(0, patience_us)(random)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself: " << status;
    for (ssize_t got; (got = read(pipes[0], buffer, sizeof buffer)) > 0;) acknowledged += got;
    close(pipes[0]);

    Store store(path());
    std::vector<std::string> findings = check_integrity(store);
    ASSERT_TRUE(findings.empty()) << findings.front();
    int64_t found = query_integer(store.connection(), "SELECT count(*) FROM trial");
    EXPECT_GE(found, acknowledged);
    EXPECT_LE(found, acknowledged + 1);
    EXPECT_EQ(query_integer(store.connection(), "SELECT count(*) FROM sample"), found * 20);
    EXPECT_EQ(query_integer(store.connection(), "SELECT count(*) FROM trial WHERE median_us IS NULL"), 0);
    died_mid_transaction += found > acknowledged;
    before = found;
  }
  EXPECT_GT(before, kRounds) << "too few trials to have killed anything";
  printf("  %d kills, %lld trials, %d times one more than acknowledged\n", kRounds,
         static_cast<long long>(before), died_mid_transaction);
}

TEST_F(DurabilityTest, TwoWritersShareAFileFromItsCreation) {
  constexpr int kTrials = 150;
  pid_t children[2];
  for (int writer = 0; writer < 2; ++writer) {
    children[writer] = fork();
    if (children[writer] != 0) continue;
    try {
      Store store(path());
      int64_t device = store.device_id(h200());
      // Half are the same trials, which only one of them may insert.
      for (int i = 0; i < kTrials; ++i)
        store.record_trial(numbered(i % 2 == 0 ? i : 1000 * writer + i), device);
    } catch (const std::exception& e) {
      fprintf(stderr, "writer %d: %s\n", writer, e.what());
      _exit(1);
    }
    _exit(0);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(count("trial"), kTrials / 2 + kTrials);
  EXPECT_EQ(count("device"), 1);
  Store store(path());
  EXPECT_TRUE(check_integrity(store).empty());
}

TEST_F(DurabilityTest, ReadersAreNotBlockedByAWriter) {
  Store writer(path());
  int64_t device = writer.device_id(h200());
  writer.record_trial(numbered(0), device);
  Transaction open(writer.connection());
  writer.record_trial(numbered(1), device);
  // A blocked reader would fail after its timeout of 0 ms.
  Connection reader = open_database(path(), OpenMode::read_only, current_schema(), 0);
  EXPECT_EQ(query_integer(reader, "SELECT count(*) FROM trial"), 1);
  open.commit();
  EXPECT_EQ(query_integer(reader, "SELECT count(*) FROM trial"), 2);
}

TEST_F(DurabilityTest, AWriterIsNotBlockedByAReader) {
  Store writer(path());
  int64_t device = writer.device_id(h200());
  for (int i = 0; i < 3; ++i) writer.record_trial(numbered(i), device);
  Store reader(path(), OpenMode::read_only);
  Statement half_read(reader.connection(), "SELECT id FROM trial");
  ASSERT_TRUE(half_read.step());
  Connection second = open_database(path(), OpenMode::read_write_create, current_schema(), 0);
  Transaction write(second);
  second.execute("INSERT INTO sweep (command_line, seed, tool_version) VALUES ('', 0, '')");
  write.commit();
}

TEST_F(DurabilityTest, AbandonedTransactionsRollBack) {
  Store store(path());
  int64_t device = store.device_id(h200());
  {
    Transaction outer(store.connection());
    store.record_trial(numbered(0), device);  // joins the outer one
  }
  EXPECT_EQ(count("trial"), 0);
  EXPECT_EQ(count("problem"), 0);
}

}  // namespace
}  // namespace gemmtune
