// What the worker measures: regimes, warm operands, graphs, and the vendor library as one of the candidates.
#include <fmt/format.h>

#include <cmath>

#include "search/launch_cost.h"
#include "search/statistics.h"
#include "tests/gpu/gpu_fixture.h"

namespace gemmtune {
namespace {

class Sampling : public GpuTest {
 protected:
  std::unique_ptr<GpuExecutor> begin(const Shape& shape, const ProblemClass& cls = {}, float beta = 0) {
    auto executor = std::make_unique<GpuExecutor>(gpu_.index);
    EXPECT_EQ(executor->begin_problem({cls, shape}, 1, beta).outcome, Outcome::ok);
    return executor;
  }
  void prepare(GpuExecutor& executor, int handle, std::string_view config = "") {
    Variant v = variant(config);
    StepResult ready = executor.prepare(handle, v, compile(v));
    ASSERT_EQ(ready.outcome, Outcome::ok) << ready.message;
  }
  double median_us(GpuExecutor& executor, int handle, bool warm = false) {
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      SampleResult got = executor.sample(handle, Regime::burst, warm);
      EXPECT_EQ(got.outcome, Outcome::ok) << got.message;
      EXPECT_EQ(name(got.sample.mark), "") << "is this GPU shared?";
      times.push_back(got.sample.time_us);
    }
    return median(times);
  }
};

TEST_F(Sampling, SustainedLastsAndCarriesTheClockUnderLoad) {
  auto executor = begin({4096, 4096, 4096});
  prepare(*executor, 0);
  double burst_us = median_us(*executor, 0);
  auto start = std::chrono::steady_clock::now();
  SampleResult got = executor->sample(0, Regime::sustained);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_EQ(got.outcome, Outcome::ok) << got.message;
  EXPECT_GT(seconds, 1.2);
  EXPECT_LT(seconds, 3);
  EXPECT_NEAR(got.sample.time_us * got.sample.launches, 700000, 250000);
  EXPECT_GT(got.sample.time_us, 0.95 * burst_us);
  fmt::print("burst {:.1f} us, sustained {:.1f} us at {} MHz, {} W, {} C, reasons {:#x}\n", burst_us,
             got.sample.time_us, got.sample.sm_clock_khz / 1000, got.sample.power_mw / 1000,
             got.sample.temperature_c, got.sample.event_reasons);
  if (got.sample.sm_clock_khz == 0) return;  // no NVML
  EXPECT_GT(got.sample.power_mw, 200000) << "read while the load lasts";
}

TEST_F(Sampling, WarmOperandsAreFoundInL2) {
  auto executor = begin({64, 4096, 3072});  // 24 MiB of B, in an L2 of 50
  prepare(*executor, 0, "tile_m=64,consumers=1");
  double cold = median_us(*executor, 0), warm = median_us(*executor, 0, true);
  fmt::print("cold {:.2f} us, warm {:.2f} us\n", cold, warm);
  EXPECT_LT(warm, 0.95 * cold);
}

TEST_F(Sampling, AGraphTellsLaunchBoundFromNot) {
  auto verdict = [&](const Shape& shape) {
    auto executor = begin(shape);
    prepare(*executor, 0);
    std::vector<double> plain, graph;
    for (int pair = 0; pair < kLaunchCostPairs; ++pair) {
      GraphResult got = executor->sample_graph(0, false);
      EXPECT_EQ(got.outcome, Outcome::ok) << got.message;
      plain.push_back(got.plain_us);
      graph.push_back(got.graph_us);
    }
    LaunchCost cost = judge_launches(plain, graph);
    fmt::print("{}: plain {:.2f} us, graph {:.2f} us, launch-bound: {}\n", to_string(shape), median(plain),
               cost.graph_us, cost.launch_bound);
    return cost;
  };
  EXPECT_GT(verdict({64, 128, 64}).graph_us, 0);
  EXPECT_FALSE(verdict({4096, 4096, 4096}).launch_bound);
}

TEST_F(Sampling, ARequestCostsLittle) {
  auto executor = begin({128, 128, 128});
  executor->round_trip();
  std::vector<double> us;
  for (int i = 0; i < 500; ++i) us.push_back(executor->round_trip().count());
  fmt::print("round trip of a worker request: median {:.1f} us\n", median(us));
  EXPECT_LT(median(us), 1000);
}

class Library : public Sampling {
 protected:
  LibraryResult prepare_library(GpuExecutor& executor, int at_most) {
    LibraryResult library = executor.prepare_library(100, at_most);
    missing_ = library.message.find("cuBLASLt not found") != std::string::npos;
    return library;
  }
  bool missing_ = false;
};

/// Exact to the last bit in every class, so its matrices are ours: a transposition or a type confused would
/// show.
TEST_F(Library, ComputesWhatWeCompute) {
  const char* classes[] = {"bf16-bf16-kk", "f16-f16-kk", "bf16-f32-kk",       "f16-f32-mn",
                           "bf16-bf16-mk", "f16-f16-kn", "bf16-bf16-kk-beta", "bf16-f32-mn-beta"};
  for (const char* text : classes) {
    ProblemClass cls = parse_problem_class(text);
    auto executor = begin({328, 520, 1096}, cls, cls.beta ? 0.5f : 0.0f);
    LibraryResult library = prepare_library(*executor, 8);
    if (missing_) GTEST_SKIP() << library.message;
    ASSERT_EQ(library.outcome, Outcome::ok) << library.message;
    ASSERT_FALSE(library.algorithms.empty()) << text;
    int right = 0;
    for (size_t i = 0; i < library.algorithms.size(); ++i) {
      ValidationResult checked = executor->validate(100 + static_cast<int>(i));
      right += checked.outcome == Outcome::ok;
      EXPECT_TRUE(checked.outcome == Outcome::ok || i > 0) << text << ": " << checked.message;
    }
    fmt::print("{} {}: {} of {} algorithms exact, first {}\n", library.version, text, right,
               library.algorithms.size(), library.algorithms[0].name);
  }
}

TEST_F(Library, IsTimedLikeOursAndOutlivesAWorker) {
  auto executor = begin({2048, 2048, 2048});
  LibraryResult library = prepare_library(*executor, 4);
  if (missing_) GTEST_SKIP() << library.message;
  ASSERT_EQ(library.outcome, Outcome::ok) << library.message;
  double before = median_us(*executor, 100);
  Variant v = variant("");
  std::string bad = replaced(render(v), "  const u32 ring = shared_address(shared_memory);",
                             "  const u32 ring = shared_address(shared_memory);\n"
                             "  if (size_m > 0) *reinterpret_cast<volatile int*>(16) = 1;");
  ASSERT_EQ(executor->prepare(0, v, compile(v, bad)).outcome, Outcome::ok);
  EXPECT_EQ(executor->validate(0).outcome, Outcome::crashed);
  double after = median_us(*executor, 100);
  EXPECT_NEAR(after / before, 1, 0.1);
  fmt::print("{}: 2048x2048x2048 first choice {:.2f} us ({:.1f} TFLOP/s)\n", library.version, after,
             2 * std::pow(2048.0, 3) / after / 1e6);
  SampleResult sustained = executor->sample(100, Regime::sustained);
  EXPECT_EQ(sustained.outcome, Outcome::ok) << sustained.message;
}

}  // namespace
}  // namespace gemmtune
