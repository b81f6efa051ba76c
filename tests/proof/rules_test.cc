// Is every rule of sm100_gemm needed? Configurations that one rule alone rejects are compiled, checked and
// run as if they were legal. What passes everything is evidence that the rule is stricter than the machine;
// such rules are listed here with the reason why they stay.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "gemm/error.h"
#include "kernel_templates/render.h"
#include "search/space.h"
#include "tests/all_cores.h"
#include "tests/proof/proof.h"

namespace gemmtune {
namespace {

/// Rules that forbid what runs right on the emulator, and why they stay.
const std::map<std::string, std::string> kPolicy = {
    {"acc_slots", "the second accumulator would be idle: the same kernel with more tensor memory"},
    {"mma_wait", "with roles the knob has no effect: one kernel under two names"},
    {"stream_k", "without a static grid nothing is cut: the same work under two names"},
    {"cluster", "16 CTAs need an attribute that the launch does not set, and leave more SMs idle"},
    {"workspace", "memory that the library is not given either"},
    {"mma_n", "steps of 16 are CUTLASS's for operands in shared memory; 32 until a B200 has run them"},
    {"preferred_clc", "the PTX ISA does not say which kind of cluster is handed over"},
    {"serial_prefetch", "without roles the knob has no effect: one launch under several names"},
    {"loader_l2", "with cp_async the knobs have no effect: one launch under several names"},
    {"hilbert", "without bands the knob has no effect: one launch under several names"},
    {"tile_b", "slices that begin inside a swizzle pattern are proven for Hopper's copies only"},
};

/// A reason without its numbers: one way to break a rule.
std::string pattern_of(const std::string& reason) {
  std::string pattern;
  for (char c : reason) {
    bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) pattern += c;
    if (digit && !pattern.ends_with('#')) pattern += '#';
  }
  return pattern;
}

struct Candidate {
  Variant variant;
  Trip trip;
  std::string rule, reason, pattern;
  std::string static_fault, run_fault;

  std::string text() const {
    return fmt::format("{} {} {}", to_string(variant.cls),
                       brief_text(variant.family->knobs(), variant.config), to_string(trip.shape));
  }
};

/// The one rule that rejects a configuration, with its reason; "" if none or several do.
std::pair<std::string, std::string> only_violation(const Variant& v, const std::optional<Shape>& shape) {
  std::pair<std::string, std::string> found;
  const ConstraintScope scope{*v.arch, v.cls, shape};
  for (const Constraint& rule : v.family->constraints()) {
    std::string reason = rule.violated(v.config, scope);
    if (reason.empty()) continue;
    if (!found.first.empty()) return {};
    found = {rule.name, std::move(reason)};
  }
  return found;
}

ProblemClass random_class(std::mt19937_64& random) {
  auto coin = [&] { return random() % 2 == 0; };
  return {coin() ? DType::f16 : DType::bf16, static_cast<DType>(random() % 3), coin() ? Major::mn : Major::k,
          coin() ? Major::mn : Major::k, coin()};
}

/// Legal configurations with a few knobs changed at random, and legal ones on shapes that TMA cannot address
/// or that need much workspace; up to `each` of every way to break a rule.
std::vector<Candidate> draw_candidates(size_t each, uint64_t seed) {
  const ArchSpec& arch = find_arch("sm_100a");
  const KernelFamily& family = family_for(arch);
  std::mt19937_64 random(seed);
  std::vector<Candidate> all;
  std::map<std::string, size_t> count;
  std::set<std::string> seen;
  std::set<std::string> of_this_draw;
  auto offer = [&](const Variant& v, const std::optional<Shape>& shape, uint64_t pick) {
    auto [rule, reason] = only_violation(v, shape);
    std::string pattern = pattern_of(reason);
    if (rule.empty() || count[rule + pattern] >= each || !of_this_draw.insert(rule + pattern).second) return;
    Candidate c{v, ragged_trip(v, pick), rule, reason, pattern, {}, {}};
    if (shape) c.trip.shape = *shape;
    c.trip.instruction_limit = 50'000'000;
    if (!seen.insert(c.text()).second) return;
    ++count[rule + pattern];
    all.push_back(std::move(c));
  };
  for (int draw = 0; draw < 400; ++draw) {
    ProblemClass cls = random_class(random);
    std::optional<Config> legal = Space(family, arch, cls, std::nullopt).sample(random);
    if (!legal) continue;
    Variant v{&family, &arch, cls, *legal};
    of_this_draw.clear();
    for (int change = 0; change < 300; ++change) {
      Variant changed = v;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        size_t knob = random() % family.knobs().size();
        const std::vector<int>& values = family.knobs()[knob].values;
        changed.config.values[knob] = values[random() % values.size()];
      }
      offer(changed, std::nullopt, random());
    }
    Shape s = ragged_trip(v, random()).shape;
    offer(v, Shape{s.m + 1, s.n, s.k}, 0);
    offer(v, Shape{s.m, s.n + 1, s.k}, 0);
    offer(v, Shape{s.m, s.n, s.k + 1}, 0);
    offer(v, Shape{2048 + 8, 2048 + 8, int64_t{16} * family.value(*legal, "tile_k")}, 0);
  }
  return all;
}

void prove(const Nvrtc& nvrtc, Candidate& c) {
  CompileResult compiled = nvrtc.compile({"", render(c.variant), std::string(c.variant.arch->name)});
  c.static_fault = static_fault(c.variant, compiled);
  if (!compiled.ok) return;
  try {
    // Preferred clusters are to be had under eager and never under lazy.
    for (auto policy : {emulator::SchedulePolicy::eager, emulator::SchedulePolicy::lazy}) {
      c.trip.schedule = {policy, 0};
      c.run_fault = run_fault(c.variant, compiled.ptx, c.trip);
      if (!c.run_fault.empty()) return;
    }
  } catch (const std::exception& error) {  // a tensor map that cannot be encoded
    c.run_fault = error.what();
  }
}

TEST(Sm100Proof, EveryRuleIsNeeded) {
  if (!std::getenv("GEMMTUNE_COVERING")) GTEST_SKIP() << "scripts/prove.sh runs this";
  auto start = std::chrono::steady_clock::now();
  std::vector<Candidate> candidates = draw_candidates(8, 20260801);
  Nvrtc nvrtc;
  on_all_cores(candidates.size(), [&](size_t i) { prove(nvrtc, candidates[i]); });

  struct Line {
    int rejected = 0, not_compiled = 0, not_as_designed = 0, not_run_right = 0, passed = 0;
    std::set<std::string> passed_reasons;
    std::string passed_example, failed_example;
  };
  std::map<std::string, std::map<std::string, Line>> table;
  for (const Candidate& c : candidates) {
    Line& line = table[c.rule][c.pattern];
    ++line.rejected;
    if (c.static_fault.starts_with("does not compile")) {
      ++line.not_compiled;
    } else if (!c.run_fault.empty()) {
      ++line.not_run_right;
    } else if (!c.static_fault.empty()) {
      ++line.not_as_designed;
    } else {
      ++line.passed;
      line.passed_example = c.text() + ": " + c.reason;
      EXPECT_TRUE(kPolicy.contains(c.rule)) << c.text() << " is rejected, " << c.reason << ", but runs right";
    }
    if (!c.run_fault.empty() || !c.static_fault.empty())
      line.failed_example = (c.run_fault.empty() ? c.static_fault : c.run_fault).substr(0, 200);
  }
  fmt::print("{:<18} {:>8} {:>12} {:>13} {:>15} {:>6}\n", "rule", "rejected", "not compiled", "not run right",
             "not as designed", "passed");
  for (const Constraint& rule : family_for(find_arch("sm_100a")).constraints()) {
    if (table[rule.name].empty()) fmt::print("{:<18} {:>8}\n", rule.name, 0);
    for (const auto& [pattern, line] : table[rule.name]) {
      fmt::print("{:<18} {:>8} {:>12} {:>13} {:>15} {:>6}  {}\n", rule.name, line.rejected, line.not_compiled,
                 line.not_run_right, line.not_as_designed, line.passed, pattern);
      if (!line.failed_example.empty()) fmt::print("    fails: {}\n", line.failed_example);
      if (!line.passed_example.empty()) fmt::print("    passes: {}\n", line.passed_example);
    }
  }
  fmt::print("rules: {} rows in {:.0f} s\n", candidates.size(),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace
}  // namespace gemmtune
