// The multiply of f32 panels: plain (fused multiply-add, vectorised) and with Hopper's accumulation rule.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "emulator/matrix.h"
#include "emulator/numeric.h"

namespace gemmtune::emulator {
namespace {

// GCC vector types; the same body is compiled for the widths that the host may have.
typedef float Vec4 __attribute__((vector_size(16)));
typedef float Vec8 __attribute__((vector_size(32)));
typedef float Vec16 __attribute__((vector_size(64)));

#define ALWAYS_INLINE inline __attribute__((always_inline))

template <class V>
ALWAYS_INLINE void load(V& v, const float* p) {
  __builtin_memcpy(&v, p, sizeof(V));
}
template <class V>
ALWAYS_INLINE void store(float* p, const V& v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

/// kRows x (kVectors of V) of C in registers over all of K.
template <class V, int kRows, int kVectors>
ALWAYS_INLINE void tile(uint32_t k, const float* a, uint32_t lda, const float* b, uint32_t ldb,
                        float* const* c, uint32_t n0, bool accumulate) {
  constexpr uint32_t kWidth = sizeof(V) / sizeof(float);
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) {
      if (accumulate)
        load(sum[i][j], c[i] + n0 + static_cast<uint32_t>(j) * kWidth);
      else
        sum[i][j] = V{};
    }
  for (uint32_t p = 0; p < k; ++p) {
    V y[kVectors];
    for (int j = 0; j < kVectors; ++j)
      load(y[j], b + size_t{p} * ldb + n0 + static_cast<uint32_t>(j) * kWidth);
    for (int i = 0; i < kRows; ++i) {
      V x = V{} + a[static_cast<size_t>(i) * lda + p];
      for (int j = 0; j < kVectors; ++j) sum[i][j] += x * y[j];
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) store(c[i] + n0 + static_cast<uint32_t>(j) * kWidth, sum[i][j]);
}

template <class V, int kRows, int kVectors>
ALWAYS_INLINE void multiply(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                            uint32_t ldb, float* const* c, bool accumulate) {
  constexpr uint32_t kStep = kVectors * sizeof(V) / sizeof(float);
  for (uint32_t n0 = 0; n0 < n;) {
    if (n0 + kStep <= n) {
      uint32_t i = 0;
      for (; i + kRows <= m; i += kRows)
        tile<V, kRows, kVectors>(k, a + size_t{i} * lda, lda, b, ldb, c + i, n0, accumulate);
      for (; i < m; ++i) tile<V, 1, kVectors>(k, a + size_t{i} * lda, lda, b, ldb, c + i, n0, accumulate);
      n0 += kStep;
    } else {
      // N is a multiple of 8 everywhere.
      for (uint32_t i = 0; i < m; ++i)
        tile<Vec4, 1, 2>(k, a + size_t{i} * lda, lda, b, ldb, c + i, n0, accumulate);
      n0 += 8;
    }
  }
}

using Multiply = void (*)(uint32_t, uint32_t, uint32_t, const float*, uint32_t, const float*, uint32_t,
                          float* const*, bool);

void multiply_portable(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                       uint32_t ldb, float* const* c, bool accumulate) {
  multiply<Vec4, 2, 4>(m, n, k, a, lda, b, ldb, c, accumulate);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_avx2(uint32_t m, uint32_t n, uint32_t k, const float* a,
                                                       uint32_t lda, const float* b, uint32_t ldb,
                                                       float* const* c, bool accumulate) {
  multiply<Vec8, 4, 2>(m, n, k, a, lda, b, ldb, c, accumulate);
}
__attribute__((target("avx512f,fma"))) void multiply_avx512(uint32_t m, uint32_t n, uint32_t k,
                                                            const float* a, uint32_t lda, const float* b,
                                                            uint32_t ldb, float* const* c, bool accumulate) {
  multiply<Vec16, 8, 2>(m, n, k, a, lda, b, ldb, c, accumulate);
}
#endif

Multiply pick_multiply() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_avx2;
#endif
  return multiply_portable;
}

/// Exponent of a term's factor: subnormals count with their type's least exponent.
int exponent_of(float v, int least) {
  uint32_t e = std::bit_cast<uint32_t>(v) >> 23 & 0xff;
  int exponent = e ? static_cast<int>(e) - 127 : -126;
  return std::max(exponent, least);
}

int least_exponent(ScalarType type) {
  const FloatFormat& f = float_format(type);
  return 1 - f.bias;
}

/// 2^n for |n| < 1023.
double power_of_two(int n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

/// Toward zero to `bits` significant bits, and to the 2^-149 grid below. f32 result.
float cut(double v, int bits) {
  if (v == 0) return 0.0f;  // a zero result is +0
  double magnitude = std::fabs(v);
  int e = std::ilogb(magnitude);
  int quantum = std::max(e - (bits - 1), -149);
  double units = std::trunc(std::ldexp(magnitude, -quantum));
  double r = std::ldexp(units, quantum);
  if (r == 0) return 0.0f;
  if (r > static_cast<double>(std::numeric_limits<float>::max()))
    return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(v));
  return static_cast<float>(v < 0 ? -r : r);
}

/// Whether a row of A or a column of B has an infinity or a NaN: only their results are special.
bool has_special(uint32_t k, const float* a, const float* b, uint32_t ldb) {
  bool finite = true;
  for (uint32_t p = 0; p < k; ++p) finite &= std::isfinite(a[p]) && std::isfinite(b[size_t{p} * ldb]);
  return !finite;
}

float special_sum(uint32_t k, const float* a, const float* b, uint32_t ldb, float d) {
  double sum = d;
  for (uint32_t p = 0; p < k; ++p) sum += static_cast<double>(a[p]) * static_cast<double>(b[size_t{p} * ldb]);
  if (std::isnan(sum)) return std::bit_cast<float>(0x7fffffffu);
  return static_cast<float>(sum);
}

}  // namespace

void multiply_f32(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                  uint32_t ldb, float* const* c, bool accumulate) {
  static const Multiply run = pick_multiply();
  run(m, n, k, a, lda, b, ldb, c, accumulate);
}

void multiply_exact(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                    uint32_t ldb, float* const* c, bool accumulate, const AccumulationRule& rule) {
  // A subnormal operand or D counts with the least exponent of its own type (H200).
  int least_a = least_exponent(rule.a), least_b = least_exponent(rule.b),
      least_d = rule.f16_result ? -14 : -126;
  constexpr int kNone = -100000;
  std::vector<int> ea(size_t{m} * k), eb(size_t{k} * n);
  bool finite = true;
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t p = 0; p < k; ++p) {
      float v = a[size_t{i} * lda + p];
      finite &= std::isfinite(v);
      ea[size_t{i} * k + p] = v == 0 ? kNone : exponent_of(v, least_a);
    }
  for (uint32_t p = 0; p < k; ++p)
    for (uint32_t j = 0; j < n; ++j) {
      float v = b[size_t{p} * ldb + j];
      finite &= std::isfinite(v);
      eb[size_t{p} * n + j] = v == 0 ? kNone : exponent_of(v, least_b);
    }
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t j = 0; j < n; ++j) {
      float d = accumulate ? c[i][j] : 0.0f;
      if (!std::isfinite(d) || (!finite && has_special(k, a + size_t{i} * lda, b + j, ldb))) {
        c[i][j] = special_sum(k, a + size_t{i} * lda, b + j, ldb, d);
        continue;
      }
      int e = d == 0 ? kNone : exponent_of(d, least_d);
      for (uint32_t p = 0; p < k; ++p) e = std::max(e, ea[size_t{i} * k + p] + eb[size_t{p} * n + j]);
      if (e < kNone / 2) {
        c[i][j] = 0.0f;
        continue;
      }
      double up = power_of_two(rule.fraction_bits - e), down = power_of_two(e - rule.fraction_bits);
      // Every term is an integer below 2^(F+2) after the cut, so the sum is exact in double.
      int64_t sum = static_cast<int64_t>(static_cast<double>(d) * up);
      for (uint32_t p = 0; p < k; ++p) {
        double product =
            static_cast<double>(a[size_t{i} * lda + p]) * static_cast<double>(b[size_t{p} * ldb + j]);
        sum += static_cast<int64_t>(product * up);
      }
      double exact = static_cast<double>(sum) * down;
      if (rule.f16_result)  // + 0: zeros are positive, also after rounding
        c[i][j] =
            static_cast<float>(decode_float(encode_float(exact, ScalarType::f16), ScalarType::f16)) + 0.0f;
      else
        c[i][j] = cut(exact, rule.result_bits);
    }
}

void multiply_hopper(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                     uint32_t ldb, float* const* c, bool accumulate, const AccumulationRule& rule) {
  // Integers: sums below the limit are exact in f32, and the rule cuts nothing.
  auto integers = [](const float* v, uint32_t count, float& most) {
    bool whole = true;
    float high = most;
    for (uint32_t i = 0; i < count; ++i) {
      float x = std::fabs(v[i]);
      // Adding and removing 2^23 rounds to integer; larger values and NaN fail the comparison below.
      whole &= (x + 8388608.0f) - 8388608.0f == x;
      high = x > high ? x : high;
    }
    most = high;
    return whole;
  };
  float max_a = 0, max_b = 0, max_c = 0;
  bool whole = true;
  for (uint32_t i = 0; i < m && whole; ++i) whole = integers(a + size_t{i} * lda, k, max_a);
  for (uint32_t p = 0; p < k && whole; ++p) whole = integers(b + size_t{p} * ldb, n, max_b);
  if (accumulate)
    for (uint32_t i = 0; i < m && whole; ++i) whole = integers(c[i], n, max_c);
  double limit = std::ldexp(1.0, rule.result_bits - (rule.f16_result ? 13 : 0));
  if (whole && static_cast<double>(k) * max_a * max_b + max_c < limit && max_c < 8388608.0f) {
    multiply_f32(m, n, k, a, lda, b, ldb, c, accumulate);
    // The rule gives +0 for every zero; f32 gives -0 only for (-0) + (-0) and products of signed zeros.
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t j = 0; j < n; ++j) c[i][j] += 0.0f;
    return;
  }
  multiply_exact(m, n, k, a, lda, b, ldb, c, accumulate, rule);
}

}  // namespace gemmtune::emulator
