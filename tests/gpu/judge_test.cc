// The judge is judged: kernels that are broken in one place are caught, named rightly, and cost only
// themselves.
#include "tests/gpu/gpu_fixture.h"

namespace gemmtune {
namespace {

class Judge : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (family_->name() != "sm90_gemm") GTEST_SKIP() << "the broken kernels are made from sm90_gemm";
    good_ = render(variant(""));
  }

  /// Validates a broken source at one ragged shape, then the unbroken kernel: it must still pass.
  StepResult judge(const std::string& source) {
    GpuExecutor::Deadlines deadlines;
    deadlines.validate = std::chrono::milliseconds(3000);
    GpuExecutor executor(gpu_.index, deadlines);
    Variant v = variant("");
    EXPECT_EQ(executor.begin_problem({v.cls, {328, 520, 1096}}, 1, 0).outcome, Outcome::ok);
    StepResult broken = executor.prepare(0, v, compile(v, source));
    if (broken.outcome == Outcome::ok) broken = executor.validate(0);
    // A cached proxy result must not vouch for another kernel, so the good one goes under another config.
    Variant other = variant("raster_group=4");
    EXPECT_EQ(executor.prepare(1, other, compile(other)).outcome, Outcome::ok);
    ValidationResult after = executor.validate(1);
    EXPECT_EQ(after.outcome, Outcome::ok) << after.message;
    SampleResult sample = executor.sample(1, Regime::burst);
    EXPECT_EQ(sample.outcome, Outcome::ok) << sample.message;
    EXPECT_GT(sample.sample.time_us, 0);
    return broken;
  }

  std::string good_;
};

TEST_F(Judge, PassesTheUnbrokenKernel) { EXPECT_EQ(judge(good_).outcome, Outcome::ok); }

TEST_F(Judge, RowsThatAreNeverWritten) {
  StepResult r = judge(replaced(good_, "if (row >= size_m) continue;", "if (row >= size_m - 1) continue;"));
  EXPECT_EQ(r.outcome, Outcome::wrong_result);
  EXPECT_NE(r.message.find("got NaN"), std::string::npos) << r.message;
}

TEST_F(Judge, LastKTileSkipped) {
  StepResult r =
      judge(replaced(good_, "const int k_tiles = ceil_div(size_k, knob::tile_k);",
                     "const int k_tiles = size_k / knob::tile_k > 0 ? size_k / knob::tile_k : 1;"));
  EXPECT_EQ(r.outcome, Outcome::wrong_result);
}

TEST_F(Judge, AccumulatorLeftOnForTheFirstMma) {
  // What the registers hold at first is luck: a wrong result at once, or two launches that differ.
  StepResult r = judge(replaced(good_, "k > 0 || step > 0);", "true);"));
  EXPECT_TRUE(r.outcome == Outcome::wrong_result || r.outcome == Outcome::unstable) << name(r.outcome);
}

TEST_F(Judge, WritesBehindItsBuffer) {
  StepResult r = judge(replaced(good_, "if (row >= size_m) continue;", "if (row >= size_m + 1) continue;"));
  EXPECT_EQ(r.outcome, Outcome::wrong_result);
  EXPECT_NE(r.message.find("wrote outside its buffers"), std::string::npos) << r.message;
}

TEST_F(Judge, RoundsTowardZero) {
  StepResult r = judge(replaced(good_, "cvt.rn.bf16x2.f32", "cvt.rz.bf16x2.f32"));
  EXPECT_EQ(r.outcome, Outcome::wrong_result);
  EXPECT_NE(r.message.find("rounding fill"), std::string::npos) << r.message;
}

TEST_F(Judge, DiffersFromLaunchToLaunch) {
  // A bit of the clock in one element: inside the bound of the normal fill, caught by bit comparison.
  StepResult r = judge(replaced(good_, "  float value = __fmul_rn(s.alpha, acc);",
                                "  float value = __fmul_rn(s.alpha, acc);\n"
                                "  if (acc != rintf(acc)) value *= 1.0f + 0x1p-9f * ((clock() >> 3) & 1);"));
  EXPECT_TRUE(r.outcome == Outcome::unstable || r.outcome == Outcome::wrong_result) << name(r.outcome);
}

TEST_F(Judge, SpinsForEver) {
  StepResult r = judge(replaced(good_, "mbarrier_init(full + 8 * s, 1);", "mbarrier_init(full + 8 * s, 2);"));
  EXPECT_EQ(r.outcome, Outcome::timed_out);
  EXPECT_NE(r.message.find("the worker was killed"), std::string::npos) << r.message;
}

TEST_F(Judge, ReadsAnIllegalAddress) {
  StepResult r = judge(replaced(good_, "  const u32 ring = shared_address(shared_memory);",
                                "  const u32 ring = shared_address(shared_memory);\n"
                                "  if (size_m > 0) *reinterpret_cast<volatile int*>(16) = 1;"));
  EXPECT_EQ(r.outcome, Outcome::crashed);
}

TEST_F(Judge, NoCubinAtAll) {
  GpuExecutor executor(gpu_.index);
  Variant v = variant("");
  ASSERT_EQ(executor.begin_problem({v.cls, {128, 128, 128}}, 1, 0).outcome, Outcome::ok);
  CompiledKernel kernel;
  kernel.cubin = "not an ELF file";
  EXPECT_EQ(executor.prepare(0, v, kernel).outcome, Outcome::launch_failed);
  EXPECT_EQ(executor.prepare(1, v, compile(v)).outcome, Outcome::ok);
  EXPECT_EQ(executor.validate(1).outcome, Outcome::ok);
}

}  // namespace
}  // namespace gemmtune
