// Opening: what is no usable database gets one line with the path and what to do; read-only works wherever
// reading does.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

namespace fs = std::filesystem;

class OpenTest : public DbTest {
 protected:
  std::string open_error(const std::string& file, OpenMode mode = OpenMode::read_write_create,
                         int timeout_ms = 50) {
    std::string message =
        message_of<EnvironmentError>([&] { open_database(file, mode, current_schema(), timeout_ms); });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(message == "no error" || message.find(file) != std::string::npos) << message;
    return message;
  }
  void write(const std::string& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  }

  /// Runs `body` as a user that file permissions apply to (root ignores them), in a child. True if it
  /// returned "".
  template <class Body>
  std::string as_ordinary_user(Body body) {
    int pipes[2];
    EXPECT_EQ(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
      std::string result;
      try {
        result = body();
      } catch (const std::exception& e) {
        result = e.what();
      }
      [[maybe_unused]] ssize_t written = ::write(pipes[1], result.data(), result.size());
      _exit(0);
    }
    close(pipes[1]);
    std::string result;
    char buffer[512];
    for (ssize_t got; (got = read(pipes[0], buffer, sizeof buffer)) > 0;)
      result.append(buffer, static_cast<size_t>(got));
    close(pipes[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? result : "child failed";
  }

  void make_folder_read_only() {
    for (const auto& file : fs::directory_iterator(folder_)) fs::permissions(file, fs::perms(0444));
    fs::permissions(folder_, fs::perms(0555));
  }
  void TearDown() override { fs::permissions(folder_, fs::perms(0755)); }

  static std::string count_trials(const std::string& file) {
    Store store(file, OpenMode::read_only);
    return std::to_string(query_integer(store.connection(), "SELECT count(*) FROM trial"));
  }
};

TEST_F(OpenTest, CreatesAndReopens) {
  Store(path()).device_id(h200());
  Store store(path());
  EXPECT_EQ(store.device(1).name, "NVIDIA H200");
  EXPECT_EQ(query_integer(store.connection(), "PRAGMA application_id"), kApplicationId);
  EXPECT_EQ(query_integer(store.connection(), "PRAGMA user_version"), current_schema().version);
  EXPECT_EQ(query_integer(store.connection(), "PRAGMA foreign_keys"), 1);
  EXPECT_EQ(query_integer(store.connection(), "PRAGMA synchronous"), 1);  // NORMAL
  Statement mode(store.connection(), "PRAGMA journal_mode");
  ASSERT_TRUE(mode.step());
  EXPECT_EQ(mode.text(0), "wal");
}

TEST_F(OpenTest, RefusesWhatIsNoDatabase) {
  write(path("text.db"), std::string(5000, 'x'));
  EXPECT_NE(open_error(path("text.db")).find("not a SQLite database"), std::string::npos);
  EXPECT_NE(open_error(path("text.db"), OpenMode::read_only).find("not a SQLite database"),
            std::string::npos);
  EXPECT_EQ(fs::file_size(path("text.db")), 5000u);  // untouched
  EXPECT_NE(open_error(folder_.string()).find("is a folder"), std::string::npos);
  EXPECT_NE(open_error(path("missing/t.db")).find("does not exist"), std::string::npos);
  EXPECT_NE(open_error(path("missing.db"), OpenMode::read_only).find("no such file"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("missing.db")));
}

TEST_F(OpenTest, TakesAnEmptyFileAsNewForWritingOnly) {
  write(path(), "");
  EXPECT_NE(open_error(path(), OpenMode::read_only).find("is empty"), std::string::npos);
  EXPECT_EQ(open_error(path()), "no error");
}

TEST_F(OpenTest, RefusesAnotherProgramsDatabase) {
  Connection(path(), OpenMode::read_write_create).execute("CREATE TABLE theirs (x)");
  EXPECT_NE(open_error(path()).find("another program"), std::string::npos);
}

TEST_F(OpenTest, RefusesANewerSchema) {
  Store(path()).connection().execute("PRAGMA user_version = 99");
  std::string expected =
      fmt::format("newer gemmtune (schema version 99, this one knows {})", current_schema().version);
  for (OpenMode mode : {OpenMode::read_write_create, OpenMode::read_only})
    EXPECT_NE(open_error(path(), mode).find(expected), std::string::npos);
}

TEST_F(OpenTest, NamesADamagedFile) {
  {
    Store store(path());
    store.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file << std::string(2000, '\xee');  // page 1 behind the header
  file.close();
  EXPECT_NE(open_error(path()).find("damaged"), std::string::npos);
}

TEST_F(OpenTest, SaysWhoHoldsALockedDatabase) {
  Store holder(path());
  Connection waiting = open_database(path(), OpenMode::read_write_create, current_schema(), 50);
  Transaction held(holder.connection());
  std::string message = message_of<EnvironmentError>([&] { Transaction second(waiting); });
  EXPECT_NE(message.find("another gemmtune"), std::string::npos) << message;
}

TEST_F(OpenTest, NamesAFullDisk) {
  Store store(path());
  store.connection().execute("PRAGMA max_page_count = 1");  // as far as it is now
  std::string message = message_of<EnvironmentError>([&] {
    for (int i = 0; i < 10'000; ++i) store.start_sweep(std::string(5000, 'x'), 1, "0");
  });
  EXPECT_NE(message.find("disk is full"), std::string::npos) << message;
}

TEST_F(OpenTest, ReadOnlyConnectionsCannotWrite) {
  { Store store(path()); }
  Store store(path(), OpenMode::read_only);
  std::string message = message_of<EnvironmentError>([&] { store.start_sweep("x", 1, "0"); });
  EXPECT_NE(message.find("cannot be written"), std::string::npos) << message;
}

TEST_F(OpenTest, RefusesToWriteAReadOnlyFile) {
  { Store store(path()); }
  make_folder_read_only();
  EXPECT_NE(as_ordinary_user([&] { return open_error(path()); }).find("read-only"), std::string::npos);
}

TEST_F(OpenTest, ReadsAReadOnlyFolder) {
  {
    Store store(path());
    store.record_trial(failed_trial(problem(), "stages=1", Outcome::crashed), store.device_id(h200()));
  }
  make_folder_read_only();
  EXPECT_FALSE(fs::exists(path() + "-wal"));
  EXPECT_EQ(as_ordinary_user([&] { return count_trials(path()); }), "1");
}

/// What a killed writer leaves: a row that exists in the WAL alone.
class LeftoverWal : public OpenTest {
 protected:
  void SetUp() override {
    if (fork() == 0) {
      try {
        Store store(path());
        store.record_trial(failed_trial(problem(), "stages=1", Outcome::crashed), store.device_id(h200()));
        kill(getpid(), SIGKILL);
      } catch (const std::exception&) {
      }
      _exit(1);
    }
    wait(nullptr);
    ASSERT_GT(fs::file_size(path() + "-wal"), 0u);
    fs::permissions(folder_, fs::perms(0755));
  }
};

TEST_F(LeftoverWal, IsReadInAReadOnlyFolder) {
  make_folder_read_only();
  EXPECT_EQ(as_ordinary_user([&] { return count_trials(path()); }), "1");
}

TEST_F(LeftoverWal, IsReadWithoutItsSharedMemoryFile) {
  fs::remove(path() + "-shm");
  make_folder_read_only();
  EXPECT_EQ(as_ordinary_user([&] { return count_trials(path()); }), "1");
}

TEST_F(LeftoverWal, IsReadBesideAWriter) { EXPECT_EQ(count_trials(path()), "1"); }

}  // namespace
}  // namespace gemmtune
