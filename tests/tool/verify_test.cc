// gemmtune verify against a device and a compiler that change: what still holds, what does not, and what is
// stored.
#include <fmt/format.h>

#include <map>
#include <set>

#include "db/check.h"
#include "db/stale_mark.h"
#include "db/winners.h"
#include "kernel_templates/render.h"
#include "tests/db/fixture.h"
#include "tool/db_journal.h"
#include "tool/verify_winners.h"

namespace gemmtune {
namespace {

struct FakeCompiler : Compiler {
  std::string version = "13.0.88";
  bool works = true;
  int compiled = 0;

  Toolchain toolchain() const override { return {"nvrtc", version}; }
  void submit(CompileRequest) override {}
  CompileResult take(const std::string& key) override {
    ++compiled;
    CompileResult result;
    result.key = key;
    result.ok = works;
    result.cubin = works ? "cubin" : "";
    result.log = works ? "" : "error: no such instruction";
    result.evidence.registers = 64;
    return result;
  }
  bool poll(std::chrono::milliseconds) override { return false; }
};

struct FakeGpu : Executor {
  DeviceRecord record = h200();
  std::map<std::string, double> times_us;  ///< by config
  std::set<std::string> wrong;
  std::map<int, std::string> loaded;
  std::vector<int64_t> visited;  ///< M of each problem begun
  int reserved = 0;

  DeviceRecord device() const override { return record; }
  std::optional<std::string> reserve() override {
    ++reserved;
    return std::nullopt;
  }
  void release() noexcept override { --reserved; }
  StepResult begin_problem(const Problem& problem, float, float) override {
    EXPECT_EQ(reserved, 1);
    visited.push_back(problem.shape.m);
    return {};
  }
  StepResult prepare(int handle, const Variant& v, const CompiledKernel&) override {
    loaded[handle] = to_text(v.family->knobs(), v.config);
    return {};
  }
  ValidationResult validate(int handle) override {
    ValidationResult result;
    result.validation = passed_validation();
    if (!wrong.contains(loaded.at(handle))) return result;
    result.outcome = Outcome::wrong_result;
    result.message = "sharp fill at 8x8x8: 1 of 64 elements wrong";
    result.validation.cases[0].mismatches = 1;
    return result;
  }
  SampleResult sample(int handle, Regime, bool) override {
    SampleResult result;
    result.sample.time_us = times_us.at(loaded.at(handle));
    result.sample.launches = 100;
    return result;
  }
};

class VerifyTest : public DbTest {
 protected:
  VerifyTest() : store_(path()) {
    first_ = config("stages=4"), second_ = config("stages=5"), other_ = config("stages=3");
    add(problem(4096, 4096, 4096), first_, 200);
    add(problem(4096, 4096, 4096), second_, 250);
    add(problem(128, 4096, 4096), other_, 25);
    refresh_winners(store_, knobs_away_from_default);
    gpu_.times_us = {{first_, 201}, {second_, 250}, {other_, 25}};
  }
  static std::string config(const char* text) {
    const std::vector<Knob>& knobs = find_family("sm90_gemm")->knobs();
    return to_text(knobs, parse_config(knobs, text));
  }
  std::string key(const std::string& text) const {
    const KernelFamily* family = find_family("sm90_gemm");
    Variant v{family, &find_arch("sm_90a"), {}, parse_config(family->knobs(), text)};
    return compile_key(render(v), "sm_90a", compiler_.toolchain());
  }
  void add(const Problem& p, const std::string& text, double us) {
    CompiledKernel stored = kernel(key(text), text);
    stored.evidence = {};
    stored.evidence.registers = 64;
    store_.put_kernel(stored);
    Trial trial = ok_trial(p, text, {us, us * 1.001, us * 0.999});
    trial.kernel_key = key(text);
    store_.record_trial(trial, store_.device_id(h200()));
  }
  std::map<int64_t, VerifiedWinner> verify() {
    VerifyOptions options;
    std::map<int64_t, VerifiedWinner> rows;
    std::vector<BestAnswer> winners = winners_to_verify(store_, gpu_, options);
    for (VerifiedWinner& row :
         verify_winners(store_, compiler_, gpu_, winners, options, store_.start_sweep("verify", 1, "test")))
      rows[row.stored.problem.shape.m] = row;
    std::vector<std::string> findings = check_integrity(store_);
    EXPECT_TRUE(findings.empty()) << findings.front();
    return rows;
  }
  std::optional<Winner> winner(int64_t m, const DeviceRecord& device = h200()) {
    return store_.winner(problem(m, 4096, 4096), store_.device_id(device), Timing());
  }
  std::string winning_config(int64_t m, const DeviceRecord& device = h200()) {
    std::optional<Winner> w = winner(m, device);
    return w ? store_.trial(w->trial_id)->trial.config : "none";
  }
  size_t trial_count() { return store_.trials({}).size(); }

  FakeCompiler compiler_;
  FakeGpu gpu_;
  Store store_;
  std::string first_, second_, other_;
};

TEST_F(VerifyTest, WhatHoldsStaysAsItIs) {
  auto rows = verify();
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& [m, row] : rows) {
    EXPECT_EQ(row.verdict, Verdict::holds) << row.message;
    EXPECT_FALSE(row.compiled_again);
  }
  EXPECT_NEAR(*rows.at(4096).change(), 1.005, 1e-6);
  EXPECT_GE(rows.at(4096).noise, 0.02);
  EXPECT_EQ(compiler_.compiled, 0) << "cubins come from the cache";
  EXPECT_EQ(trial_count(), 3u);
  EXPECT_EQ(winning_config(4096), first_);
  // Winners only, each of them in two rounds: not one after the other.
  EXPECT_EQ(gpu_.visited.size(), 4u);
  EXPECT_NE(gpu_.visited[0], gpu_.visited[1]);
  EXPECT_EQ(gpu_.reserved, 0);
}

TEST_F(VerifyTest, AWrongWinnerLosesToTheNext) {
  gpu_.wrong = {first_};
  auto rows = verify();
  EXPECT_EQ(rows.at(4096).verdict, Verdict::wrong);
  EXPECT_EQ(rows.at(4096).outcome, Outcome::wrong_result);
  EXPECT_EQ(rows.at(128).verdict, Verdict::holds);
  EXPECT_EQ(winning_config(4096), second_);
  EXPECT_EQ(winning_config(128), other_);
  for (const StoredTrial& stored : store_.trials({})) {
    if (stored.trial.config != first_) continue;
    EXPECT_EQ(stored.trial.outcome, Outcome::wrong_result);
    EXPECT_EQ(stored.trial.message, "verify: sharp fill at 8x8x8: 1 of 64 elements wrong");
  }
}

TEST_F(VerifyTest, AnotherTimeIsStaleUntilItHoldsAgain) {
  gpu_.times_us[first_] = 230;
  EXPECT_EQ(verify().at(4096).verdict, Verdict::slower);
  EXPECT_EQ(winning_config(4096), first_) << "times of two days do not choose among each other";
  EXPECT_TRUE(is_stale(*winner(4096))) << winner(4096)->evidence;
  EXPECT_FALSE(is_stale(*winner(128)));
  gpu_.times_us[first_] = 170;
  EXPECT_EQ(verify().at(4096).verdict, Verdict::faster);
  EXPECT_EQ(winner(4096)->evidence.find("stale: ", 7), std::string::npos) << "marked once";
  gpu_.times_us[first_] = 200;
  EXPECT_EQ(verify().at(4096).verdict, Verdict::holds);
  EXPECT_FALSE(is_stale(*winner(4096)));
  EXPECT_TRUE(winner(4096)->evidence.starts_with("validated by gpu")) << winner(4096)->evidence;
  EXPECT_EQ(trial_count(), 3u);
}

/// Trials that came in since (a killed sweep leaves winners due) do not take the mark away.
TEST_F(VerifyTest, AMarkSurvivesWinnersThatWereDue) {
  add(problem(4096, 4096, 4096), config("stages=2"), 300);
  add(problem(128, 4096, 4096), config("stages=2"), 30);
  gpu_.times_us = {{first_, 230}, {other_, 30}};
  for (const auto& [m, row] : verify()) EXPECT_EQ(row.verdict, Verdict::slower);
  EXPECT_TRUE(is_stale(*winner(4096)));
  EXPECT_TRUE(is_stale(*winner(128)));
}

TEST_F(VerifyTest, ANewDriverGetsTrialsOfItsOwn) {
  gpu_.record.driver_version = "590.10";
  gpu_.times_us[first_] = 230;
  auto rows = verify();
  EXPECT_EQ(rows.at(4096).verdict, Verdict::slower);
  EXPECT_EQ(rows.at(4096).driver_then, "580.95");
  EXPECT_EQ(rows.at(4096).driver_now, "590.10");
  EXPECT_EQ(rows.at(128).verdict, Verdict::holds);
  EXPECT_EQ(trial_count(), 5u);
  EXPECT_TRUE(is_stale(*winner(4096)));
  EXPECT_FALSE(is_stale(*winner(128)));
  EXPECT_EQ(winning_config(4096, gpu_.record), first_);
  EXPECT_NEAR(winner(4096, gpu_.record)->median_us, 230, 1e-9);
  // The next time the driver is not new: its own winners are the ones to hold.
  for (const auto& [m, row] : verify()) EXPECT_EQ(row.verdict, Verdict::holds);
  EXPECT_EQ(trial_count(), 5u);
  // Under yet another driver a kernel is wrong: what the old one measured was right there.
  gpu_.record.driver_version = "600.00";
  gpu_.wrong = {first_};
  EXPECT_EQ(verify().at(4096).verdict, Verdict::wrong);
  DeviceRecord before = gpu_.record;
  before.driver_version = "590.10";
  EXPECT_TRUE(is_stale(*winner(4096, before)));
  EXPECT_FALSE(winner(4096, gpu_.record).has_value());
}

TEST_F(VerifyTest, ANewCompilerIsAnotherKernel) {
  compiler_.version = "13.1.0";
  for (const auto& [m, row] : verify()) {
    EXPECT_EQ(row.verdict, Verdict::holds) << row.message;
    EXPECT_TRUE(row.compiled_again);
  }
  EXPECT_EQ(compiler_.compiled, 2);
  EXPECT_EQ(trial_count(), 5u);
  EXPECT_EQ(store_.trial(winner(4096)->trial_id)->trial.kernel_key, key(first_)) << "the fresh kernel wins";
  compiler_.version = "13.2.0";
  gpu_.wrong = {first_};
  EXPECT_EQ(verify().at(4096).verdict, Verdict::wrong);
  EXPECT_EQ(winning_config(4096), second_) << "the old kernel of this configuration is overtaken";
}

TEST_F(VerifyTest, ACompilerThatRefusesIsARowToo) {
  compiler_.version = "14.0.0";
  compiler_.works = false;
  for (const auto& [m, row] : verify()) {
    EXPECT_EQ(row.verdict, Verdict::no_kernel);
    EXPECT_EQ(row.outcome, Outcome::compile_failed);
    EXPECT_EQ(row.message, "error: no such instruction");
  }
  EXPECT_TRUE(gpu_.visited.empty());
}

TEST_F(VerifyTest, AnotherGpusWinnersAreNotItsOwn) {
  gpu_.record.uuid = "GPU-2";
  EXPECT_TRUE(winners_to_verify(store_, gpu_, {}).empty());
}

}  // namespace
}  // namespace gemmtune
