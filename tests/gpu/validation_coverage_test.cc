// Every value of every knob and every problem class runs on the GPU and passes validation: proxy shapes and a
// ragged shape of its own, three fills each. Prints the table; fails on a blank.
#include <fmt/format.h>

#include "tests/all_cores.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/kernel_templates/coverage.h"

namespace gemmtune {
namespace {

struct Row {
  std::string what;
  Variant variant;
  CompileResult compiled;
};

class ValidationCoverage : public GpuTest {
 protected:
  void validate(GpuExecutor& executor, Row& row, float alpha, float beta) {
    std::string verdict = "validated";
    CompiledKernel kernel;
    kernel.ok = row.compiled.ok;
    kernel.cubin = row.compiled.cubin;
    if (!kernel.ok) {
      verdict = row.compiled.log;
    } else {
      Problem problem{row.variant.cls, {328, 520, 1096}};
      StepResult step = executor.begin_problem(problem, alpha, beta);
      if (step.outcome == Outcome::ok) step = executor.prepare(0, row.variant, kernel);
      size_t cases = 0;
      if (step.outcome == Outcome::ok) {
        ValidationResult result = executor.validate(0);
        step = result;
        cases = result.validation.cases.size();
        EXPECT_EQ(result.validation.passed(), result.outcome == Outcome::ok);
      }
      verdict = step.outcome == Outcome::ok ? fmt::format("validated, {} cases", cases)
                                            : fmt::format("{}: {}", name(step.outcome), step.message);
    }
    fmt::print("{:<8} {:<34} {}\n", arch_->name, row.what, verdict);
    EXPECT_TRUE(verdict.starts_with("validated,")) << row.what << ": " << verdict;
  }
};

TEST_F(ValidationCoverage, EveryKnobValue) {
  std::vector<Row> rows;
  for (CoverageRow& row : coverage_rows(*family_, *arch_, {}))
    rows.push_back({row.knob + "=" + row.value, variant(row.config), {}});
  compile_all(rows);
  GpuExecutor executor(gpu_.index);
  for (Row& row : rows) validate(executor, row, 1, 0);
}

TEST_F(ValidationCoverage, EveryProblemClass) {
  std::vector<Row> rows;
  for (DType in : {DType::f16, DType::bf16})
    for (DType out : {DType::f16, DType::bf16, DType::f32})
      for (Major a : {Major::k, Major::mn})
        for (Major b : {Major::k, Major::mn})
          for (bool beta : {false, true}) {
            ProblemClass cls{in, out, a, b, beta};
            rows.push_back({to_string(cls), variant(family_->default_config(), cls), {}});
          }
  compile_all(rows);
  GpuExecutor executor(gpu_.index);
  for (Row& row : rows)
    validate(executor, row, row.variant.cls.beta ? 0.5f : 1.0f, row.variant.cls.beta ? 2.0f : 0.0f);
}

// Random legal configurations, other knobs off their defaults together.
TEST_F(ValidationCoverage, RandomConfigurations) {
  std::vector<Row> rows;
  std::mt19937_64 random(2026);
  for (int i = 0; i < 60; ++i) {
    ProblemClass cls{i % 2 ? DType::f16 : DType::bf16, static_cast<DType>(i % 3),
                     i % 5 ? Major::k : Major::mn, i % 7 ? Major::k : Major::mn, i % 11 == 0};
    std::optional<Config> config = Space(*family_, *arch_, cls, std::nullopt).sample(random);
    ASSERT_TRUE(config.has_value());
    rows.push_back({to_string(cls) + " " + brief_text(family_->knobs(), *config), variant(*config, cls), {}});
  }
  compile_all(rows);
  GpuExecutor executor(gpu_.index);
  for (Row& row : rows) {
    if (row.compiled.ok && row.compiled.evidence.spill_store_bytes > 0) continue;
    validate(executor, row, 1, row.variant.cls.beta ? 1.0f : 0.0f);
  }
}

}  // namespace
}  // namespace gemmtune
