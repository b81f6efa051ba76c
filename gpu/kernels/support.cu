// Kernels that judge: operand fills, the plain reference GEMM (no TMA, no tensor cores), comparison, guard check.
// Compiled with NVRTC by the GPU worker. Element types: 0 f16, 1 bf16, 2 f32 (gemm/dtype.h).

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

enum Type { kF16, kBf16, kF32 };

__device__ __forceinline__ float from_bits(u16 bits, int type) {
  if (type == kBf16) return __uint_as_float(static_cast<u32>(bits) << 16);
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ __forceinline__ u16 to_bits(float value, int type) {
  u16 bits;
  if (type == kBf16) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  } else {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  return bits;
}

__device__ __forceinline__ float load(const void* base, i64 index, int type) {
  return type == kF32 ? static_cast<const float*>(base)[index] : from_bits(static_cast<const u16*>(base)[index], type);
}

__device__ __forceinline__ void store(void* base, i64 index, float value, int type) {
  if (type == kF32) {
    static_cast<float*>(base)[index] = value;
  } else {
    static_cast<u16*>(base)[index] = to_bits(value, type);
  }
}

/// splitmix64: the value depends on seed and index alone, so any element can be recomputed anywhere.
__device__ __forceinline__ u64 hash(u64 seed, u64 index) {
  u64 z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/// kind 0: +1 or -1 with probability density / 2^32, else 0. kind 1: integers uniform in [-range, range].
/// kind 2: standard normal.
extern "C" __global__ void fill(void* base, i64 count, int type, int kind, u64 seed, u32 density, int range) {
  for (i64 i = blockIdx.x * static_cast<i64>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<i64>(gridDim.x) * blockDim.x) {
    u64 bits = hash(seed, static_cast<u64>(i));
    float value;
    if (kind == 0) {
      value = static_cast<u32>(bits) <= density ? ((bits >> 32) & 1 ? 1.0f : -1.0f) : 0.0f;
    } else if (kind == 1) {
      value = static_cast<float>(static_cast<int>((bits >> 32) * (2 * static_cast<u64>(range) + 1) >> 32) - range);
    } else {
      float u1 = (static_cast<u32>(bits) + 1.0f) * 0x1p-32f;
      float u2 = static_cast<u32>(bits >> 32) * 0x1p-32f;
      value = sqrtf(-2.0f * logf(u1)) * cospif(2.0f * u2);
    }
    store(base, i, value, type);
  }
}

constexpr int kTileM = 64, kTileN = 128, kTileK = 16, kRows = 4, kColumns = 8, kFlush = 64;

/// The reference. A[m,k] lies at m * a_m + k * a_k, B[k,n] at n * b_n + k * b_k. Products are summed in f32 over
/// kFlush steps of K and those sums in f64: exact for integer fills, and for normal data better than any tensor core.
///
/// kBound false (integer fills): `expected` gets the result rounded once to the output type.
/// kBound true (normal fill): `expected` gets f32 alpha * acc + beta * c, `magnitude` gets |alpha| * sum |a| |b|.
template <bool kBound>
__device__ __forceinline__ void reference(const void* a, i64 a_m, i64 a_k, const void* b, i64 b_n, i64 b_k,
                                          const void* c, void* expected, float* magnitude, int size_m, int size_n,
                                          int size_k, int in_type, int out_type, float alpha, float beta) {
  __shared__ float tile_a[kTileK][kTileM + 4], tile_b[kTileK][kTileN + 4];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const i64 tiles_n = (size_n + kTileN - 1) / kTileN;
  const int m0 = static_cast<int>(blockIdx.x / tiles_n) * kTileM, n0 = static_cast<int>(blockIdx.x % tiles_n) * kTileN;
  float part[kRows][kColumns] = {}, absolute[kRows][kColumns] = {};
  double total[kRows][kColumns] = {};

  for (int k0 = 0; k0 < size_k; k0 += kTileK) {
    for (int i = threadIdx.x; i < kTileM * kTileK; i += 256) {
      // Neighbouring threads follow the contiguous dimension.
      int m = a_k == 1 ? i / kTileK : i % kTileM, k = a_k == 1 ? i % kTileK : i / kTileM;
      bool inside = m0 + m < size_m && k0 + k < size_k;
      tile_a[k][m] = inside ? load(a, (m0 + m) * a_m + (k0 + k) * a_k, in_type) : 0.0f;
    }
    for (int i = threadIdx.x; i < kTileN * kTileK; i += 256) {
      int n = b_k == 1 ? i / kTileK : i % kTileN, k = b_k == 1 ? i % kTileK : i / kTileN;
      bool inside = n0 + n < size_n && k0 + k < size_k;
      tile_b[k][n] = inside ? load(b, (n0 + n) * b_n + (k0 + k) * b_k, in_type) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTileK; ++k) {
      float av[kRows], bv[kColumns];
#pragma unroll
      for (int i = 0; i < kRows; ++i) av[i] = tile_a[k][ty * kRows + i];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) bv[j] = tile_b[k][tx + 16 * j];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          part[i][j] = fmaf(av[i], bv[j], part[i][j]);
          if (kBound) absolute[i][j] = fmaf(fabsf(av[i]), fabsf(bv[j]), absolute[i][j]);
        }
    }
    __syncthreads();
    if ((k0 / kTileK + 1) % (kFlush / kTileK) == 0 || k0 + kTileK >= size_k) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          total[i][j] += part[i][j];
          part[i][j] = 0;
        }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      int m = m0 + ty * kRows + i, n = n0 + tx + 16 * j;
      if (m >= size_m || n >= size_n) continue;
      i64 index = static_cast<i64>(m) * size_n + n;
      float value = __fmul_rn(alpha, static_cast<float>(total[i][j]));
      if (beta != 0) value = __fmaf_rn(beta, load(c, index, out_type), value);
      store(expected, index, value, kBound ? kF32 : out_type);
      if (kBound) magnitude[index] = fabsf(alpha) * absolute[i][j];
    }
}

extern "C" __global__ void __launch_bounds__(256)
    reference_exact(const void* a, i64 a_m, i64 a_k, const void* b, i64 b_n, i64 b_k, const void* c, void* expected,
                    float* magnitude, int m, int n, int k, int in_type, int out_type, float alpha, float beta) {
  reference<false>(a, a_m, a_k, b, b_n, b_k, c, expected, magnitude, m, n, k, in_type, out_type, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(256)
    reference_bound(const void* a, i64 a_m, i64 a_k, const void* b, i64 b_n, i64 b_k, const void* c, void* expected,
                    float* magnitude, int m, int n, int k, int in_type, int out_type, float alpha, float beta) {
  reference<true>(a, a_m, a_k, b, b_n, b_k, c, expected, magnitude, m, n, k, in_type, out_type, alpha, beta);
}

struct Verdict {
  u64 mismatches;
  u64 first;           // smallest index of a mismatch
  u32 max_abs_error;   // f32 bits; NaN counts as infinity
  u32 max_over_bound;  // f32 bits
};

__device__ __forceinline__ void record(Verdict* verdict, bool wrong, u64 index, float error, float over_bound) {
  if (wrong) {
    atomicAdd(&verdict->mismatches, 1ull);
    atomicMin(&verdict->first, index);
  }
  // Non-negative floats order like their bits.
  if (error > 0) atomicMax(&verdict->max_abs_error, __float_as_uint(error));
  if (over_bound > 0) atomicMax(&verdict->max_over_bound, __float_as_uint(over_bound));
}

/// Bit for bit.
extern "C" __global__ void compare_exact(const void* got, const void* want, i64 count, int type, Verdict* verdict) {
  for (i64 i = blockIdx.x * static_cast<i64>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<i64>(gridDim.x) * blockDim.x) {
    bool same = type == kF32 ? static_cast<const u32*>(got)[i] == static_cast<const u32*>(want)[i]
                             : static_cast<const u16*>(got)[i] == static_cast<const u16*>(want)[i];
    if (same) continue;
    float error = fabsf(load(got, i, type) - load(want, i, type));
    if (!(error <= 3.4e38f)) error = __uint_as_float(0x7f800000);
    // +0 and -0 differ in bits and are both right.
    if (error > 0) record(verdict, true, static_cast<u64>(i), error, 0);
  }
}

/// |got - want| <= slope * magnitude + half a step of the output type at the value.
extern "C" __global__ void compare_bound(const void* got, const float* want, const float* magnitude, i64 count,
                                         int type, float slope, Verdict* verdict) {
  const float half_step = type == kF16 ? 0x1p-11f : type == kBf16 ? 0x1p-8f : 0x1p-24f;
  const float smallest = type == kF16 ? 0x1p-25f : 0x1p-134f;
  for (i64 i = blockIdx.x * static_cast<i64>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<i64>(gridDim.x) * blockDim.x) {
    float value = want[i];
    float error = fabsf(load(got, i, type) - value);
    float accumulated = slope * magnitude[i];
    float bound = accumulated + half_step * (fabsf(value) + accumulated) + smallest;
    bool wrong = !(error <= bound);
    if (!(error <= 3.4e38f)) error = __uint_as_float(0x7f800000);
    record(verdict, wrong, static_cast<u64>(i), error, error / bound);
  }
}

/// Counts bytes of a guard band that are not the pattern.
extern "C" __global__ void check_guard(const unsigned char* guard, i64 count, u32 pattern, u64* damaged) {
  for (i64 i = blockIdx.x * static_cast<i64>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<i64>(gridDim.x) * blockDim.x)
    if (guard[i] != pattern) atomicAdd(damaged, 1ull);
}
