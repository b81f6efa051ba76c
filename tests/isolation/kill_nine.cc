// kill -9 of a real sweep at random moments, as often as asked, and what the database is like after each.
//
//     kill_nine GEMMTUNE KILLS SECONDS SEED -- SWEEP-OPTION...
//
// One sweep runs undisturbed; then the same sweep is killed and resumed until it is done, on a new database
// each time that it is done, until KILLS kills or SECONDS seconds; the last one may end. After each kill: the
// database is sound, every trial that a reader had seen is there, none twice, and no worker is left. Each
// sweep that got to its end has the same trials with the same outcomes as the undisturbed one. Exit status 0
// if all that holds; the table says.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "db/queries.h"

namespace gemmtune {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Arguments {
  fs::path binary;
  int kills = 0, seconds = 0;
  uint64_t seed = 0;
  std::vector<std::string> sweep;
};

struct Counts {
  int kills = 0, before_first_trial = 0, during_resumed = 0, sweeps = 0;
  int unsound = 0, lost = 0, twice = 0, orphans = 0, different = 0, failed = 0;
  bool good() const { return unsound + lost + twice + orphans + different + failed == 0; }
};

/// Runs gemmtune with its output in a file. Returns its pid.
pid_t start(const Arguments& a, const std::vector<std::string>& arguments, const fs::path& output) {
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  std::vector<char*> argv{const_cast<char*>("gemmtune")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(a.binary.c_str(), argv.data());
  ::_exit(127);
}

std::vector<std::string> sweep_of(const Arguments& a, const fs::path& db) {
  std::vector<std::string> arguments{"sweep", "--db", db.string()};
  arguments.insert(arguments.end(), a.sweep.begin(), a.sweep.end());
  return arguments;
}

bool succeeded(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

/// "512x512x512 stages=2,... ok": identity and outcome of each trial, and which shapes have a settled winner.
std::multiset<std::string> trial_set(const fs::path& db) {
  std::multiset<std::string> set;
  Store store(db.string(), OpenMode::read_only);
  for (const StoredTrial& stored : store.trials({}))
    set.insert(fmt::format("{} {} {} {}", to_string(stored.trial.problem.shape), stored.trial.kernel_key,
                           stored.trial.config, name(stored.trial.outcome)));
  for (const BestAnswer& answer : best(store, BestFilter()))
    if (answer.winner && !answer.due)
      set.insert(fmt::format("{} has a winner", to_string(answer.problem.shape)));
  return set;
}

/// Ids of the trials that a reader sees now; nothing while there is no database yet.
std::set<int64_t> visible_trials(const fs::path& db) {
  std::set<int64_t> ids;
  if (!fs::exists(db)) return ids;
  try {
    Store store(db.string(), OpenMode::read_only);
    Statement row(store.connection(), "SELECT id FROM trial");
    while (row.step()) ids.insert(row.integer(0));
  } catch (const std::exception&) {
    // Its creator is at work on it.
  }
  return ids;
}

bool has_no_tables(const fs::path& db) {
  Connection connection(db.string(), OpenMode::read_only);
  return query_integer(connection, "SELECT count(*) FROM sqlite_schema") == 0;
}

/// Workers of this binary that are still there.
int workers_alive(const fs::path& binary) {
  int alive = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::error_code none;
    if (fs::read_symlink(entry.path() / "exe", none) == binary && !none) ++alive;
  }
  return alive;
}

void check_after_kill(const Arguments& a, const fs::path& db, const std::set<int64_t>& seen, Counts& counts) {
  Clock::time_point end = Clock::now() + std::chrono::seconds(5);
  while (workers_alive(a.binary) > 0 && Clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
  counts.orphans += workers_alive(a.binary);
  if (!fs::exists(db)) {
    counts.lost += static_cast<int>(seen.size());
    return;
  }
  int status = 0;
  ::waitpid(start(a, {"db", "check", "--db", db.string()}, db.string() + ".check"), &status, 0);
  // One killed at its creation has no tables yet, perhaps no bytes: a reader does not take it for a database,
  // and nothing was in it.
  if (!succeeded(status) && !(seen.empty() && has_no_tables(db))) {
    ++counts.unsound;
    fmt::print("unsound: gemmtune db check --db {}\n", db.string());
  }
  std::set<int64_t> now = visible_trials(db);
  for (int64_t id : seen) counts.lost += !now.contains(id);
  if (now.empty()) return;
  Store store(db.string(), OpenMode::read_only);
  counts.twice += static_cast<int>(
      query_integer(store.connection(),
                    "SELECT count(*) FROM (SELECT 1 FROM trial GROUP BY problem_id, device_id, "
                    "config_id, arch, kernel_id, regime, protocol, warm HAVING count(*) > 1)"));
}

void compare_with_undisturbed(const std::multiset<std::string>& expected, const fs::path& db,
                              Counts& counts) {
  ++counts.sweeps;
  if (trial_set(db) == expected) return;
  ++counts.different;
  fmt::print("different trials: {}\n", db.string());
}

int run(Arguments a) {
  std::string pattern = (fs::temp_directory_path() / "gemmtune-kill-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  // A copy: what else runs the binary meanwhile is none of our workers.
  fs::copy_file(a.binary, folder / "gemmtune");
  a.binary = fs::canonical(folder / "gemmtune");
  const fs::path undisturbed = folder / "undisturbed.db";
  int status = 0;
  Clock::time_point begin = Clock::now();
  ::waitpid(start(a, sweep_of(a, undisturbed), folder / "undisturbed.log"), &status, 0);
  if (!succeeded(status)) {
    fmt::print("the sweep fails undisturbed: see {}\n", (folder / "undisturbed.log").string());
    return 1;
  }
  const double whole_s = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::multiset<std::string> expected = trial_set(undisturbed);

  std::mt19937_64 random(a.seed);
  // Over the whole length, so that every phase is met: creation, compilation, validation, timing, the winner.
  std::uniform_real_distribution<double> delay_s(0, whole_s);
  Counts counts;
  Clock::time_point loop = Clock::now();
  bool fresh = true;
  fs::path db;
  std::set<int64_t> seen;
  while (true) {
    bool last = counts.kills >= a.kills || Clock::now() - loop > std::chrono::seconds(a.seconds);
    if (last && fresh) break;
    if (fresh) {
      db = folder / fmt::format("killed-{}.db", counts.sweeps);
      seen.clear();
      fresh = false;
    }
    bool resumed = !seen.empty();
    pid_t pid = start(a, sweep_of(a, db), db.string() + ".log");
    Clock::time_point when = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                std::chrono::duration<double>(delay_s(random)));
    bool ended = false;
    while (!ended && (last || Clock::now() < when)) {
      ended = ::waitpid(pid, &status, WNOHANG) == pid;
      seen.merge(visible_trials(db));
      std::this_thread::sleep_for(milliseconds(2));
    }
    if (ended) {
      if (!succeeded(status)) {
        ++counts.failed;
        fmt::print("a resumed sweep failed: see {}.log\n", db.string());
      }
      compare_with_undisturbed(expected, db, counts);
      fresh = true;
      continue;
    }
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    ++counts.kills;
    counts.during_resumed += resumed;
    check_after_kill(a, db, seen, counts);
    seen.merge(visible_trials(db));
    counts.before_first_trial += seen.empty();
  }
  fmt::print("sweep of {} trials, {:.1f} s undisturbed; killed for {:.0f} s\n", expected.size(), whole_s,
             std::chrono::duration<double>(Clock::now() - loop).count());
  for (auto [what, count] : {std::pair("kill -9", counts.kills),
                             {"  before the first trial was stored", counts.before_first_trial},
                             {"  of a sweep that was resumed", counts.during_resumed},
                             {"sweeps resumed to their end", counts.sweeps},
                             {"databases not sound", counts.unsound},
                             {"stored trials lost", counts.lost},
                             {"trials twice", counts.twice},
                             {"workers left behind", counts.orphans},
                             {"resumed sweeps that failed", counts.failed},
                             {"sweeps with other trials or outcomes than undisturbed", counts.different}})
    fmt::print("  {:<56} {:>4}\n", what, count);
  if (counts.good()) fs::remove_all(folder);
  return counts.good() ? 0 : 1;
}

}  // namespace
}  // namespace gemmtune

int main(int argc, char** argv) {
  if (argc < 7 || std::string(argv[5]) != "--") {
    std::fputs("usage: kill_nine GEMMTUNE KILLS SECONDS SEED -- SWEEP-OPTION...\n", stderr);
    return 2;
  }
  gemmtune::Arguments a;
  a.binary = std::filesystem::canonical(argv[1]);
  a.kills = std::atoi(argv[2]);
  a.seconds = std::atoi(argv[3]);
  a.seed = std::strtoull(argv[4], nullptr, 10);
  a.sweep.assign(argv + 6, argv + argc);
  return gemmtune::run(a);
}
