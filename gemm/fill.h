// Operand fills for validation, and how close a result must come. One recipe for the GPU and for the CPU.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gemm/problem.h"

namespace gemmtune {

/// Sharp: -1, 0, +1 with a density that keeps every |C| below the integers that the output type separates, so
/// that an error of one shows. Rounding: integers whose sums are exact in f32 but need the one final
/// rounding. Normal: standard normal, judged by an error bound.
enum class Fill { sharp, rounding, normal };
std::string_view name(Fill fill);
inline constexpr Fill kAllFills[] = {Fill::sharp, Fill::rounding, Fill::normal};

/// `kind` as in gpu/kernels/support.cu: 0 signs with probability density / 2^32, 1 uniform in [-range,
/// range], 2 normal.
struct FillRecipe {
  int kind = 2;
  uint32_t density = 0;
  int range = 0;
};

/// For A and B.
FillRecipe operand_recipe(Fill fill, const Problem& problem);
/// For C where beta != 0: small integers, which disturb neither integer fill's exactness.
FillRecipe c_recipe(Fill fill);

/// 64 random bits that depend on seed and index alone (splitmix64, as in gpu/kernels/support.cu).
uint64_t fill_hash(uint64_t seed, uint64_t index);

/// Element `index` of a filled buffer, before conversion to the element type; depends on seed and index
/// alone.
float fill_value(const FillRecipe& recipe, uint64_t seed, uint64_t index);

/// The slope of the normal fill's error bound, in units of sum |a| |b|: sums over K in steps of 16 whose
/// terms and results are each cut to about 2^-23 of the largest partial sum (ptx-facts 10.2), plus the
/// reference's own error.
double error_slope(int64_t k);

/// Rounds to the element type and back.
float rounded(float value, DType type);

/// C[m,n] = alpha * A x B + beta * C on the CPU. `a` and `b` in the class' major-ness, `c` (may be empty
/// without beta) and the results row-major. Products are summed in f64, so integer fills are exact.
struct Reference {
  std::vector<float> value;      ///< before the rounding to the output type
  std::vector<float> magnitude;  ///< |alpha| * sum |a| |b|, for the normal fill's bound
};
Reference reference_gemm(const Problem& problem, const std::vector<float>& a, const std::vector<float>& b,
                         const std::vector<float>& c, float alpha, float beta);

}  // namespace gemmtune
