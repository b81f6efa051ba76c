// Sweeps with the real binary: interrupted and resumed, with a compiler that breaks, and with the real NVRTC.
#include <signal.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "tests/tool/shell.h"
#include "tool/command.h"

namespace gemmtune {
namespace {

constexpr const char* kFake = "GEMMTUNE_NVRTC=$FAKE_NVRTC ";

struct Counts {
  size_t trials = 0;
  std::set<std::string> configs;
  std::map<Outcome, int> outcomes;
};

Counts count_trials(const std::string& path) {
  Store store(path, OpenMode::read_only);
  Counts counts;
  for (const StoredTrial& stored : store.trials({})) {
    ++counts.trials;
    counts.configs.insert(stored.trial.config);
    ++counts.outcomes[stored.trial.outcome];
  }
  return counts;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

class InterruptTest : public testing::TestWithParam<int> {};

TEST_P(InterruptTest, ResumesWithoutRepeatingATrial) {
  Shell shell;
  const std::string sweep =
      "gemmtune sweep --device none --arch sm_100a --shape 512x512x512 --shape 256x512x512"
      " --strategy random --trials 20 --jobs 1";
  // The shell starts the sweep, waits until some kernels were compiled, and signals it.
  Ran first = shell.run(
      fmt::format("export GEMMTUNE_NVRTC=$FAKE_NVRTC FAKE_NVRTC_LOG=$PWD/log FAKE_NVRTC_DELAY_MS=60\n"
                  "{} & p=$!\nwhile [ $(wc -l <log 2>/dev/null || echo 0) -lt 6 ]; do sleep 0.05; done\nkill "
                  "-{} $p\nwait $p",
                  sweep, GetParam()));
  if (GetParam() == SIGKILL) {
    EXPECT_EQ(first.status, 128 + SIGKILL);
  } else {
    EXPECT_EQ(first.status, kInterrupted);
    EXPECT_EQ(first.out, "");
    EXPECT_TRUE(
        has(first.err, "interrupted: what was measured is in gemmtune.db; the same command resumes\n"))
        << first.err;
  }
  Counts before = count_trials(shell.path("gemmtune.db"));
  EXPECT_GT(before.trials, 2u);
  EXPECT_LT(before.trials, 20u);

  Ran second = shell.run(fmt::format("export FAKE_NVRTC_LOG=$PWD/log\n{}{}", kFake, sweep));
  EXPECT_EQ(second.status, kDone) << second.err;
  EXPECT_TRUE(
      has(second.err, fmt::format("outcomes: 40 compiled ({} of them from an earlier run)", before.trials)))
      << second.err;
  Counts after = count_trials(shell.path("gemmtune.db"));
  EXPECT_EQ(after.trials, 40u);
  // At most one compilation was under way and is done twice.
  size_t compiled = lines_of(read_file(shell.path("log"))).size();
  EXPECT_LE(compiled, after.trials + 1);

  Ran third = shell.run(fmt::format("export FAKE_NVRTC_LOG=$PWD/log\n{}{}", kFake, sweep));
  EXPECT_EQ(third.status, kDone);
  EXPECT_EQ(third.out, second.out);
  EXPECT_EQ(lines_of(read_file(shell.path("log"))).size(), compiled) << "a finished sweep compiles nothing";
  EXPECT_EQ(count_trials(shell.path("gemmtune.db")).trials, 40u);
  EXPECT_EQ(shell.run("gemmtune db check").status, kDone);
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptTest, testing::Values(SIGINT, SIGTERM, SIGKILL),
                         [](const auto& info) { return std::string(sigabbrev_np(info.param)); });

TEST(BrokenCompiler, OneVariantDoesNotEndTheSweep) {
  for (const char* how : {"ABORT", "FAIL"}) {
    Shell shell;
    const std::string sweep =
        "gemmtune sweep --device none --arch sm_100a --shape 512x512x512 --set stages=2,3,4"
        " --set tile_k=64 --strategy random --trials 30 --jobs 2";
    Ran ran = shell.run(fmt::format("{} FAKE_NVRTC_{}='constexpr int stages = 3;' {}", kFake, how, sweep));
    EXPECT_EQ(ran.status, kNoWinner) << "not everything compiled";
    Store store(shell.path("gemmtune.db"), OpenMode::read_only);
    std::vector<StoredTrial> trials = store.trials({});
    EXPECT_EQ(trials.size(), 30u);
    int broken = 0;
    for (const StoredTrial& stored : trials) {
      bool marked = stored.trial.config.starts_with("stages=3,");
      EXPECT_EQ(stored.trial.outcome, marked ? Outcome::compile_failed : Outcome::compiled)
          << stored.trial.message;
      if (!marked) continue;
      ++broken;
      const char* expected = how == std::string("ABORT")
                                 ? "the compiler crashed: killed by signal 6 (Aborted)"
                                 : "variant.cu(1): error: the test wants this to fail";
      EXPECT_EQ(stored.trial.message, expected);
      EXPECT_TRUE(has(ran.err, fmt::format("compile_failed {}: {}\n", stored.trial.config, expected)))
          << ran.err;
    }
    EXPECT_GT(broken, 2);
    EXPECT_LT(broken, 28);
    EXPECT_TRUE(
        has(ran.err, fmt::format("outcomes: {} compiled, {} compile_failed\n", 30 - broken, broken)) ||
        has(ran.err, fmt::format("outcomes: {} compile_failed, {} compiled\n", broken, 30 - broken)))
        << ran.err;
    // The failures are known: the same command tries nothing again.
    EXPECT_EQ(shell.run(kFake + sweep).status, kNoWinner);
    EXPECT_EQ(store.trials({}).size(), 30u);
  }
}

TEST(RealCompiler, CompilesForEveryArchitectureAndOnlyOnce) {
  Shell shell;
  if (shell.run("gemmtune compile --arch sm_90a").status == kEnvironmentFailed)
    GTEST_SKIP() << "no NVRTC here";
  for (const char* arch : {"sm_100a", "sm_103a", "sm_90a"}) {
    std::string sweep =
        fmt::format("gemmtune sweep --device none --arch {} --shape 256x256x256 --trials 2", arch);
    Ran first = shell.run(sweep);
    EXPECT_EQ(first.status, kDone) << first.err;
    EXPECT_TRUE(has(first.err, "outcomes: 2 compiled\n")) << first.err;
    EXPECT_TRUE(matches("{*}\ncompiled {*} kernel{*}: median {*}", first.err)) << first.err;
    EXPECT_TRUE(has(first.err, "no times and no winners")) << first.err;
    EXPECT_FALSE(has(first.out, "TFLOP/s"));
    Ran second = shell.run(sweep);
    EXPECT_EQ(second.status, kDone);
    EXPECT_EQ(second.out, first.out);
    EXPECT_TRUE(has(second.err, "outcomes: 2 compiled (2 of them from an earlier run)\n")) << second.err;
    EXPECT_FALSE(has(second.err, ": median ")) << "a second run compiles nothing: " << second.err;
  }
  EXPECT_EQ(count_trials(shell.path("gemmtune.db")).trials, 6u);
}

/// Nothing is lost when nobody reads the results or the messages.
TEST(Streams, AClosedStreamEndsNothing) {
  Shell shell;
  const std::string sweep =
      std::string(kFake) + "gemmtune sweep --device none --shape 512x512x512 --trials 3";
  Ran closed = shell.run(sweep + " >&- 2>&-");
  EXPECT_EQ(closed.status, kEnvironmentFailed) << "the table could not be written";
  EXPECT_EQ(count_trials(shell.path("gemmtune.db")).trials, 3u);
  Ran full = shell.run(sweep + " --seed 2 --strategy random 2>/dev/full");
  EXPECT_EQ(full.status, kDone);
  EXPECT_EQ(shell.run("gemmtune db check").status, kDone);
}

}  // namespace
}  // namespace gemmtune
