#include "gemm/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace gemmtune {
namespace {

using Eight = double __attribute__((vector_size(64)));
constexpr int64_t kRows = 4, kColumns = 16;

/// Element (mn, k) of an operand at [mn / width][k][mn % width], zeros behind the edge.
std::vector<double> panels(const std::vector<float>& operand, Major major, int64_t mn, int64_t k,
                           int64_t width) {
  std::vector<double> packed(static_cast<size_t>((mn + width - 1) / width * width * k));
  for (int64_t i = 0; i < mn; ++i)
    for (int64_t j = 0; j < k; ++j)
      packed[static_cast<size_t>((i / width * k + j) * width + i % width)] =
          double(operand[static_cast<size_t>(major == Major::k ? i * k + j : j * mn + i)]);
  return packed;
}

/// Sums over K of products and of their magnitudes, for 4 x 16 elements. Products of f16 or bf16 values are
/// exact in double, so a fused multiply-add changes nothing: the result is the same on every CPU.
#ifndef __clang__  // which writes the list otherwise
__attribute__((target_clones("avx512f", "avx2,fma", "default")))
#endif
void multiply(
    const double* a, const double* b, int64_t k, double (&value)[kRows][kColumns],
    double (&magnitude)[kRows][kColumns]) {
  Eight sum[kRows][2] = {}, absolute[kRows][2] = {};
  for (int64_t i = 0; i < k; ++i) {
    Eight y[2], size[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      std::memcpy(&y[half], b + i * kColumns + 8 * half, sizeof(Eight));
      size[half] = y[half] < 0 ? -y[half] : y[half];
    }
#pragma GCC unroll 4
    for (int64_t row = 0; row < kRows; ++row) {
      double x = a[i * kRows + row], x_size = std::fabs(x);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        sum[row][half] += x * y[half];
        absolute[row][half] += x_size * size[half];
      }
    }
  }
#pragma GCC unroll 4
  for (int64_t row = 0; row < kRows; ++row)
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      std::memcpy(&value[row][8 * half], &sum[row][half], sizeof(Eight));
      std::memcpy(&magnitude[row][8 * half], &absolute[row][half], sizeof(Eight));
    }
}

}  // namespace

std::string_view name(Fill fill) {
  switch (fill) {
    case Fill::sharp:
      return "sharp";
    case Fill::rounding:
      return "rounding";
    case Fill::normal:
      return "normal";
  }
  return "?";
}

FillRecipe operand_recipe(Fill fill, const Problem& p) {
  double k = static_cast<double>(p.shape.k);
  switch (fill) {
    case Fill::sharp: {
      // About limit / 4 products are not zero; a sum of so many signs stays below the limit.
      double products = static_cast<double>(exact_integer_limit(p.cls.out)) / 4;
      double density = std::min(1.0, std::sqrt(products / k));
      return {0, static_cast<uint32_t>(std::min(density * 0x1p32, 0x1p32 - 1)), 0};
    }
    case Fill::rounding: {
      // K * max|a| * max|b| <= 2^24, and 255 is exact in bf16. f16 ends at 65504, and infinities would hide
      // errors: six standard deviations of the sum (range^2 / 3 * sqrt(K)) stay below that.
      double range = std::min(std::sqrt(0x1p24 / k), 255.0);
      if (p.cls.out == DType::f16) range = std::min(range, std::sqrt(30000 / std::sqrt(k)));
      return {1, 0, std::max(1, static_cast<int>(range))};
    }
    case Fill::normal:
      break;
  }
  return {2, 0, 0};
}

FillRecipe c_recipe(Fill fill) {
  switch (fill) {
    case Fill::sharp:
      return {1, 0, 8};
    case Fill::rounding:
      return {1, 0, 100};
    case Fill::normal:
      break;
  }
  return {2, 0, 0};
}

uint64_t fill_hash(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

float fill_value(const FillRecipe& r, uint64_t seed, uint64_t index) {
  uint64_t bits = fill_hash(seed, index);
  uint32_t low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  if (r.kind == 0) return low <= r.density ? (high & 1 ? 1.0f : -1.0f) : 0.0f;
  if (r.kind == 1)
    return static_cast<float>(
        static_cast<int>(uint64_t{high} * (2 * static_cast<uint64_t>(r.range) + 1) >> 32) - r.range);
  float u1 = (static_cast<float>(low) + 1.0f) * 0x1p-32f, u2 = static_cast<float>(high) * 0x1p-32f;
  return std::sqrt(-2.0f * std::log(u1)) * std::cos(std::numbers::pi_v<float> * 2.0f * u2);
}

double error_slope(int64_t k) { return (static_cast<double>(k) / 16 + 32) * 0x1p-22; }

float rounded(float value, DType type) {
  switch (type) {
    case DType::f16:
      return from_f16_bits(to_f16_bits(value));
    case DType::bf16:
      return from_bf16_bits(to_bf16_bits(value));
    case DType::f32:
      break;
  }
  return value;
}

Reference reference_gemm(const Problem& p, const std::vector<float>& a, const std::vector<float>& b,
                         const std::vector<float>& c, float alpha, float beta) {
  const auto [m, n, k] = p.shape;
  std::vector<double> a_panels = panels(a, p.cls.a_major, m, k, kRows);
  std::vector<double> b_panels = panels(b, p.cls.b_major, n, k, kColumns);
  Reference result;
  result.value.resize(static_cast<size_t>(m * n));
  result.magnitude.resize(static_cast<size_t>(m * n));
  double value[kRows][kColumns], magnitude[kRows][kColumns];
  for (int64_t top = 0; top < m; top += kRows)
    for (int64_t left = 0; left < n; left += kColumns) {
      multiply(&a_panels[static_cast<size_t>(top * k)], &b_panels[static_cast<size_t>(left * k)], k, value,
               magnitude);
      for (int64_t row = top; row < std::min(top + kRows, m); ++row)
        for (int64_t column = left; column < std::min(left + kColumns, n); ++column) {
          size_t at = static_cast<size_t>(row * n + column);
          // As device/output.cuh: a rounded multiply, then a fused multiply-add.
          float scaled = alpha * static_cast<float>(value[row - top][column - left]);
          if (p.cls.beta) scaled = std::fma(beta, c[at], scaled);
          result.value[at] = scaled;
          result.magnitude[at] = std::fabs(alpha) * static_cast<float>(magnitude[row - top][column - left]);
        }
    }
  return result;
}

}  // namespace gemmtune
