// Every value of every knob, and every problem class, compiles for every architecture without spills or
// stack, with the instruction counts that the design implies. Prints the table; fails on a blank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "gpu/nvrtc.h"
#include "kernel_templates/render.h"
#include "search/static_check.h"
#include "tests/kernel_templates/coverage.h"

namespace gemmtune {
namespace {

struct Row {
  std::string what;
  Variant variant;
  CompileResult result;
};

/// In this process, on as many threads as there are cores: NVRTC is thread-safe.
void compile_all(std::vector<Row>& rows) {
  Nvrtc nvrtc;
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++)
      rows[i].result = nvrtc.compile({"", render(rows[i].variant), std::string(rows[i].variant.arch->name)});
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
}

std::string verdict(const Row& row) {
  if (!row.result.ok) return "does not compile: " + row.result.log;
  const Variant& v = row.variant;
  LaunchPlan plan = v.family->plan(v.config, v.cls, *v.arch, {1, 1, 1}, {1, 1}, 1, 0);
  StaticEvidence e = row.result.evidence;
  e.dynamic_smem_bytes = plan.dynamic_smem_bytes;
  e.tmem_columns = v.family->tmem_columns(v.config);
  std::string rejected = static_violation(e, static_cast<int>(plan.block.x), *v.arch);
  if (!rejected.empty()) return rejected;
  InstructionCounts want = v.family->expected_counts(v.config, v.cls);
  if (e.counts != want)
    return fmt::format("counts mma {} tma {} commit {} wait {} ld {}, designed {} {} {} {} {}", e.counts.mma,
                       e.counts.tma_load, e.counts.commit, e.counts.mbarrier_wait, e.counts.tmem_load,
                       want.mma, want.tma_load, want.commit, want.mbarrier_wait, want.tmem_load);
  return "";
}

void report(std::vector<Row>& rows) {
  std::vector<double> ms;
  for (const Row& row : rows) {
    std::string bad = verdict(row);
    fmt::print("{:<8} {:<34} {:>4} registers  {}\n", row.variant.arch->name, row.what,
               row.result.evidence.registers, bad.empty() ? "compiled" : bad);
    EXPECT_EQ(bad, "") << row.what;
    ms.push_back(row.result.compile_ms);
  }
  std::ranges::sort(ms);
  fmt::print("{} kernels, median {:.0f} ms\n", ms.size(), ms[ms.size() / 2]);
}

TEST(CompileCoverage, EveryKnobValue) {
  std::vector<Row> rows;
  for (std::string_view name : {"sm_100a", "sm_90a"}) {
    const ArchSpec& arch = find_arch(name);
    const KernelFamily& family = family_for(arch);
    for (CoverageRow& row : coverage_rows(family, arch, {}))
      rows.push_back({row.knob + "=" + row.value, {&family, &arch, {}, row.config}, {}});
  }
  compile_all(rows);
  report(rows);
}

TEST(CompileCoverage, EveryProblemClassAndArchitecture) {
  std::vector<Row> rows;
  for (const ArchSpec& arch : archs())
    for (DType in : {DType::f16, DType::bf16})
      for (DType out : {DType::f16, DType::bf16, DType::f32})
        for (int majors = 0; majors < 4; ++majors) {
          // beta alternates so that each type and each major-ness meets both.
          bool beta = (static_cast<int>(in) + static_cast<int>(out) + majors) % 2 == 0;
          ProblemClass cls{in, out, majors & 1 ? Major::mn : Major::k, majors & 2 ? Major::mn : Major::k,
                           beta};
          const KernelFamily& family = family_for(arch);
          rows.push_back({to_string(cls), {&family, &arch, cls, family.default_config()}, {}});
        }
  compile_all(rows);
  report(rows);
}

}  // namespace
}  // namespace gemmtune
