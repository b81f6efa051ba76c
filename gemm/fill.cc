#include "gemm/fill.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gemmtune {
namespace {

/// splitmix64, as in gpu/kernels/support.cu.
uint64_t hash(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// Element (mn, k) of an operand, copied to rows of K.
std::vector<float> k_rows(const std::vector<float>& operand, Major major, int64_t mn, int64_t k) {
  if (major == Major::k) return operand;
  std::vector<float> rows(operand.size());
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < mn; ++j)
      rows[static_cast<size_t>(j * k + i)] = operand[static_cast<size_t>(i * mn + j)];
  return rows;
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

float fill_value(const FillRecipe& r, uint64_t seed, uint64_t index) {
  uint64_t bits = hash(seed, index);
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
  std::vector<float> a_rows = k_rows(a, p.cls.a_major, m, k), b_rows = k_rows(b, p.cls.b_major, n, k);
  Reference result;
  result.value.resize(static_cast<size_t>(m * n));
  result.magnitude.resize(static_cast<size_t>(m * n));
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      const float* x = &a_rows[static_cast<size_t>(row * k)];
      const float* y = &b_rows[static_cast<size_t>(column * k)];
      // Eight independent sums: the compiler may use vector registers without reordering anything.
      double sum[8] = {}, absolute[8] = {};
      int64_t i = 0;
      for (; i + 8 <= k; i += 8)
        for (int lane = 0; lane < 8; ++lane) {
          double product = double(x[i + lane]) * double(y[i + lane]);
          sum[lane] += product;
          absolute[lane] += std::fabs(product);
        }
      for (; i < k; ++i) {
        sum[0] += double(x[i]) * double(y[i]);
        absolute[0] += std::fabs(double(x[i]) * double(y[i]));
      }
      double total = 0, magnitude = 0;
      for (int lane = 0; lane < 8; ++lane) total += sum[lane], magnitude += absolute[lane];
      size_t at = static_cast<size_t>(row * n + column);
      // As device/output.cuh: a rounded multiply, then a fused multiply-add.
      float value = alpha * static_cast<float>(total);
      if (p.cls.beta) value = std::fma(beta, c[at], value);
      result.value[at] = value;
      result.magnitude[at] = std::fabs(alpha) * static_cast<float>(magnitude);
    }
  return result;
}

}  // namespace gemmtune
