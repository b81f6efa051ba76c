#include "gemm/fill.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gemmtune {
namespace {

std::vector<float> filled(const FillRecipe& recipe, int64_t count, uint64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(fill_value(recipe, seed, static_cast<uint64_t>(i)));
  return values;
}

// The promise of each integer fill, on sums of real length: exact in f32, sharp small enough, rounding large
// enough.
TEST(Fill, SumsStayWhereTheyPromise) {
  for (DType out : {DType::bf16, DType::f16})
    for (int64_t k : {64, 512, 8192}) {
      Problem problem{{DType::bf16, out}, {24, 24, k}};
      for (Fill fill : {Fill::sharp, Fill::rounding}) {
        FillRecipe recipe = operand_recipe(fill, problem);
        std::vector<float> a = filled(recipe, 24 * k, 1), b = filled(recipe, 24 * k, 2);
        Reference r = reference_gemm(problem, a, b, {}, 1, 0);
        float largest = 0, magnitude = 0;
        for (float v : r.value) largest = std::max(largest, std::fabs(v));
        for (float v : r.magnitude) magnitude = std::max(magnitude, v);
        EXPECT_LE(magnitude, 0x1p24f);
        if (out == DType::f16) {
          EXPECT_LE(largest, 65504.0f);
        }
        EXPECT_GT(largest, 0);
        if (fill == Fill::sharp) {
          EXPECT_LE(largest, static_cast<float>(exact_integer_limit(out)));
        } else {
          EXPECT_GT(largest, static_cast<float>(exact_integer_limit(out)));
        }
        for (float v : a) EXPECT_EQ(v, rounded(v, DType::bf16));
      }
    }
}

TEST(Fill, NormalHasMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  const int count = 200000;
  for (float v : filled({2, 0, 0}, count, 3)) sum += v, squares += double(v) * v;
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
}

TEST(Reference, FollowsMajornessAlphaAndBeta) {
  Problem problem{{DType::bf16, DType::f32, Major::mn, Major::k, true}, {2, 3, 2}};
  // A (K x M in memory) = [[1, 3], [2, 4]], so A = [[1, 2], [3, 4]]; B rows of K.
  Reference r = reference_gemm(problem, {1, 3, 2, 4}, {1, 0, 0, 1, 1, -1}, {1, 1, 1, 1, 1, 1}, 2, 10);
  EXPECT_EQ(r.value, (std::vector<float>{12, 14, 8, 16, 18, 8}));
  EXPECT_EQ(r.magnitude, (std::vector<float>{2, 4, 6, 6, 8, 14}));
}

}  // namespace
}  // namespace gemmtune
