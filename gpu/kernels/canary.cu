// The canary: a plain tensor-core GEMM that never changes. Its result and its rate tell whether a GPU is still what it
// was. mma.sync runs on every architecture since sm_80, so the canary depends on no kernel family and on none of their
// mistakes. Compiled behind support.cu.

constexpr int kCanaryTile = 128, kCanaryDepth = 32;
// 40 bf16 a row: 20 words, so that the 8 rows x 4 words of a fragment lie in 32 different banks.
constexpr int kCanaryRow = kCanaryDepth + 8;

/// D (f32, row-major) = A x B^T; A and B bf16, K contiguous. M and N are multiples of 128, K of 32. 256 threads.
extern "C" __global__ void __launch_bounds__(256)
    canary_gemm(const u16* a, const u16* b, float* d, int size_n, int size_k) {
  __shared__ __align__(16) u16 tile_a[kCanaryTile * kCanaryRow], tile_b[kCanaryTile * kCanaryRow];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4, pair = lane % 4;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;  // 2 x 4 warps of 64 x 32
  const i64 m0 = blockIdx.y * static_cast<i64>(kCanaryTile), n0 = blockIdx.x * static_cast<i64>(kCanaryTile);
  float acc[4][4][4] = {};

  for (int k0 = 0; k0 < size_k; k0 += kCanaryDepth) {
    for (int i = threadIdx.x; i < kCanaryTile * kCanaryDepth / 8; i += 256) {
      int row = i / (kCanaryDepth / 8), column = i % (kCanaryDepth / 8) * 8;
      *reinterpret_cast<uint4*>(tile_a + row * kCanaryRow + column) =
          *reinterpret_cast<const uint4*>(a + (m0 + row) * size_k + k0 + column);
      *reinterpret_cast<uint4*>(tile_b + row * kCanaryRow + column) =
          *reinterpret_cast<const uint4*>(b + (n0 + row) * size_k + k0 + column);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kCanaryDepth; k += 16) {
      auto word = [&](const u16* tile, int row, int column) {
        return *reinterpret_cast<const u32*>(tile + row * kCanaryRow + column);
      };
      u32 fragment_b[4][2];
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          fragment_b[j][half] = word(tile_b, warp_n + 8 * j + group, k + 2 * pair + 8 * half);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = warp_m + 16 * i + group, column = k + 2 * pair;
        const u32 a0 = word(tile_a, row, column), a1 = word(tile_a, row + 8, column);
        const u32 a2 = word(tile_a, row, column + 8), a3 = word(tile_a, row + 8, column + 8);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
              "{%0, %1, %2, %3};"
              : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
              : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(fragment_b[j][0]), "r"(fragment_b[j][1]));
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        i64 row = m0 + warp_m + 16 * i + group + 8 * half, column = n0 + warp_n + 8 * j + 2 * pair;
        *reinterpret_cast<float2*>(d + row * size_n + column) =
            make_float2(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
      }
}
