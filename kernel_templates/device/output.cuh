// Results: alpha * acc + beta * c, rounded once to the output type, and stores that keep inside the matrix.
#pragma once
#include "device/types.cuh"

/// Two neighbouring columns of a row, `lo` first in memory.
template <Type kType>
DEVICE u32 pack_pair(float lo, float hi) {
  u32 packed;
  if constexpr (kType == Type::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(hi), "f"(lo));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(hi), "f"(lo));
  }
  return packed;
}

template <Type kType>
DEVICE float load_element(const void* base, i64 index) {
  if constexpr (kType == Type::f32) {
    return static_cast<const float*>(base)[index];
  } else {
    u16 bits = static_cast<const u16*>(base)[index];
    if constexpr (kType == Type::bf16) return __uint_as_float(static_cast<u32>(bits) << 16);
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
}

template <Type kType>
DEVICE void store_element(void* base, i64 index, float value) {
  if constexpr (kType == Type::f32) {
    static_cast<float*>(base)[index] = value;
  } else {
    static_cast<u16*>(base)[index] = static_cast<u16>(pack_pair<kType>(value, value));
  }
}

struct Scaling {
  float alpha, beta;
};

/// Rounded multiply, then fused multiply-add: the reference kernel does exactly this, so that integer data compare
/// bit for bit.
template <Type kType, bool kBeta>
DEVICE float scale(float acc, Scaling s, const void* c, i64 index) {
  float value = __fmul_rn(s.alpha, acc);
  if constexpr (kBeta) value = __fmaf_rn(s.beta, load_element<kType>(c, index), value);
  return value;
}

/// Columns `column` and `column + 1` of a row, both inside the matrix if `pair` (then N is even and the address is
/// aligned to the pair); otherwise each is checked.
template <Type kType, bool kBeta>
DEVICE void store_pair(void* d, const void* c, i64 row_start, int column, int n, bool even_n, float lo, float hi,
                       Scaling s) {
  if (column >= n) return;
  i64 index = row_start + column;
  lo = scale<kType, kBeta>(lo, s, c, index);
  if (even_n || column + 1 < n) hi = scale<kType, kBeta>(hi, s, c, index + 1);
  if (even_n) {
    if constexpr (kType == Type::f32) {
      *reinterpret_cast<float2*>(static_cast<float*>(d) + index) = make_float2(lo, hi);
    } else {
      *reinterpret_cast<u32*>(static_cast<u16*>(d) + index) = pack_pair<kType>(lo, hi);
    }
  } else {
    store_element<kType>(d, index, lo);
    if (column + 1 < n) store_element<kType>(d, index + 1, hi);
  }
}
