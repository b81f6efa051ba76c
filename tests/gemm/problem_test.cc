#include "gemm/problem.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gemm/arch.h"
#include "gemm/error.h"

namespace gemmtune {
namespace {

std::string message_of(const std::string& text) {
  try {
    parse_shape(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Shape, ParsesAndPrints) {
  EXPECT_EQ(parse_shape("8192x28672x4096"), (Shape{8192, 28672, 4096}));
  EXPECT_EQ(to_string(Shape{1, 2, 3}), "1x2x3");
}

TEST(Shape, RefusesWithTheReason) {
  EXPECT_EQ(message_of("0x1x1"), "shape '0x1x1': M must be positive");
  EXPECT_EQ(message_of("1x-4x1"), "shape '1x-4x1': N must be positive");
  EXPECT_EQ(message_of("1x1x2147483648"), "shape '1x1x2147483648': K is larger than 2147483647");
  EXPECT_EQ(message_of("1x1x99999999999999999999999"),
            "shape '1x1x99999999999999999999999': K is larger than 2147483647");
  for (std::string bad : {"", "1", "1x2", "1x2x", "1x2x3x4", "1x2x3 ", "axbxc", "1X2X3"})
    EXPECT_EQ(message_of(bad), "shape '" + bad + "': expected MxNxK, for example 4096x4096x4096");
}

TEST(ProblemClass, RoundTripsEveryCombination) {
  for (DType in : {DType::f16, DType::bf16})
    for (DType out : {DType::f16, DType::bf16, DType::f32})
      for (Major a : {Major::k, Major::mn})
        for (Major b : {Major::k, Major::mn})
          for (bool beta : {false, true}) {
            ProblemClass cls{in, out, a, b, beta};
            EXPECT_EQ(parse_problem_class(to_string(cls)), cls) << to_string(cls);
          }
  EXPECT_EQ(to_string(ProblemClass{DType::f16, DType::f32, Major::mn, Major::k, true}), "f16-f32-mk-beta");
  EXPECT_THROW(parse_problem_class("bf16-bf16"), UsageError);
  EXPECT_THROW(parse_problem_class("bf16-bf16-kk-gamma"), UsageError);
}

// Every f16 and bf16 value survives the round trip, and rounding is to nearest even at the midpoints.
TEST(DType, ConversionsRoundTripAndRoundToEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float f16 = from_f16_bits(static_cast<uint16_t>(bits));
    if (!std::isnan(f16)) {
      EXPECT_EQ(to_f16_bits(f16), bits);
    }
    float bf16 = from_bf16_bits(static_cast<uint16_t>(bits));
    if (!std::isnan(bf16)) {
      EXPECT_EQ(to_bf16_bits(bf16), bits);
    }
  }
  EXPECT_EQ(from_bf16_bits(to_bf16_bits(257.0f)), 256.0f);
  EXPECT_EQ(from_bf16_bits(to_bf16_bits(259.0f)), 260.0f);
  EXPECT_EQ(from_f16_bits(to_f16_bits(2049.0f)), 2048.0f);
  EXPECT_EQ(from_f16_bits(to_f16_bits(2051.0f)), 2052.0f);
  EXPECT_TRUE(std::isinf(from_f16_bits(to_f16_bits(65520.0f))));
  EXPECT_EQ(from_f16_bits(to_f16_bits(65519.0f)), 65504.0f);
  EXPECT_EQ(to_f16_bits(0x1p-25f), 0);
  EXPECT_EQ(to_f16_bits(0x1.8p-25f), 1);
}

TEST(Arch, KnownAndUnknown) {
  EXPECT_TRUE(find_arch("sm_100a").has_tcgen05);
  EXPECT_EQ(arch_for_compute_capability(9, 0)->name, "sm_90a");
  EXPECT_EQ(arch_for_compute_capability(8, 0), nullptr);
  EXPECT_EQ(arch_for_compute_capability(12, 0), nullptr);
  try {
    find_arch("sm_100");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown architecture 'sm_100' (did you mean 'sm_100a'?): one of sm_100a, sm_103a, sm_90a");
  }
}

TEST(Device, FoundByDriverName) {
  ASSERT_NE(find_device_spec("NVIDIA H200"), nullptr);
  EXPECT_EQ(find_device_spec("NVIDIA H200")->name, "H200");
  EXPECT_EQ(find_device_spec("NVIDIA H100 80GB HBM3")->name, "H100");
  EXPECT_EQ(find_device_spec("NVIDIA GB200"), nullptr);
}

}  // namespace
}  // namespace gemmtune
