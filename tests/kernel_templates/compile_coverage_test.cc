// Every value of every knob, and every problem class, compiles for every architecture without spills or
// stack, with the instruction counts that the design implies. Prints the table; fails on a blank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "search/static_check.h"
#include "tests/all_cores.h"
#include "tests/kernel_templates/coverage.h"

namespace gemmtune {
namespace {

struct Row {
  std::string what;
  Variant variant;
  CompileResult compiled;
};

std::string verdict(const Row& row) {
  if (!row.compiled.ok) return "does not compile: " + row.compiled.log;
  const Variant& v = row.variant;
  StaticEvidence e = planned_evidence(v, row.compiled.evidence);
  std::string rejected = static_violation(v, e);
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
               row.compiled.evidence.registers, bad.empty() ? "compiled" : bad);
    EXPECT_EQ(bad, "") << row.what;
    ms.push_back(row.compiled.compile_ms);
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
