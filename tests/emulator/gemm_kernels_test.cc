// Complete kernels under every schedule: right in every element, without a finding, the same bits each time.
#include <gtest/gtest.h>

#include "tests/emulator/gemm_runner.h"

namespace gemmtune::emulator {
namespace {

void expect_clean(const GemmCase& g) {
  GemmResult r = run_gemm(g);
  EXPECT_TRUE(r.launch.completed) << r.text();
  EXPECT_EQ(r.wrong, 0) << r.text();
  EXPECT_TRUE(r.launch.diagnoses.empty()) << r.text();
}

TEST(GemmKernels, Sm100OneCta) {
  for (const Schedule& s : kSchedules) expect_clean(sm100_case(1, s));
}

TEST(GemmKernels, Sm100CtaPair) {
  for (const Schedule& s : kSchedules) expect_clean(sm100_case(2, s));
}

TEST(GemmKernels, Sm90) {
  for (const Schedule& s : kSchedules) expect_clean(sm90_case(s));
}

TEST(GemmKernels, TmemNeedNotStartAtColumnZero) {
  GemmCase g = sm100_case(1);
  g.tmem_from_top = true;
  expect_clean(g);
}

TEST(GemmKernels, OneStepAndManyLaps) {
  for (uint32_t k : {64u, 192u, 1024u})
    for (uint32_t group : {1u, 2u}) {
      GemmCase g = sm100_case(group, {SchedulePolicy::lazy, 0});
      g.k = k;
      expect_clean(g);
    }
}

TEST(GemmKernels, NormalDataRepeatToTheBit) {
  for (bool sm90 : {false, true}) {
    std::vector<float> first;
    for (const Schedule& s : kSchedules) {
      GemmCase g = sm90 ? sm90_case(s) : sm100_case(2, s);
      g.normal_fill = true;
      GemmResult r = run_gemm(g);
      EXPECT_TRUE(r.launch.clean()) << r.text();
      EXPECT_EQ(r.wrong, 0);
      if (first.empty()) first = r.c;
      EXPECT_EQ(std::memcmp(first.data(), r.c.data(), first.size() * 4), 0);
    }
  }
}

TEST(GemmKernels, CountsExecutedInstructions) {
  GemmResult r = run_gemm(sm100_case(1));
  // 4 tiles x 10 steps x 4 multiplies.
  EXPECT_EQ(r.launch.executed.at("tcgen05.mma.cta_group::1.kind::f16"), 160u);
}

}  // namespace
}  // namespace gemmtune::emulator
