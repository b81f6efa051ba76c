// A small wgmma GEMM for the emulator's tests: C[M,N] (f32) = A[M,K] x B[N,K]^T, bf16, K-major, 128B swizzle. One
// consumer warpgroup with a 64 x 64 tile, one producer warp, ring of two stages, output through a TMA store.
//   nvcc -ptx -std=c++17 -gencode arch=compute_90a,code=compute_90a sm90_gemm.cu -o sm90_gemm.ptx
#include <cuda.h>
#include <cstdint>

constexpr int kBlock = 64, kBlockK = 64, kStages = 2;
constexpr int kBytes = kBlock * kBlockK * 2;

struct Shared {
  uint8_t a[kStages][kBytes];
  uint8_t b[kStages][kBytes];
  float c[kBlock][kBlock];
  uint64_t full[kStages], empty[kStages];
};

__device__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tAGAIN:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra AGAIN;\n\t}" ::"r"(bar), "r"(parity) : "memory");
}

__device__ void load(uint32_t dst, const CUtensorMap* map, int k, int row, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(dst),
      "l"(map), "r"(k), "r"(row), "r"(bar) : "memory");
}

__device__ uint64_t descriptor(uint32_t address) {
  return (uint64_t{address & 0x3ffff} >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

extern "C" __global__ void __launch_bounds__(256, 1) gemm(const __grid_constant__ CUtensorMap map_a,
                                                       const __grid_constant__ CUtensorMap map_b,
                                                       const __grid_constant__ CUtensorMap map_c, int k) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&s.full[i])), "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&s.empty[i])), "r"(4));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int steps = k / kBlockK;
  if (warp >= 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 4 && lane == 0)
#pragma unroll 1
      for (int i = 0; i < steps; ++i) {
        int stage = i % kStages;
        wait(smem(&s.empty[stage]), (i / kStages & 1) ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&s.full[stage])), "r"(2 * kBytes)
                     : "memory");
        load(smem(s.a[stage]), &map_a, i * kBlockK, blockIdx.x * kBlock, smem(&s.full[stage]));
        load(smem(s.b[stage]), &map_b, i * kBlockK, blockIdx.y * kBlock, smem(&s.full[stage]));
      }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = 0;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    int stage = i % kStages;
    wait(smem(&s.full[stage]), i / kStages & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll 1
    for (int j = 0; j < kBlockK / 16; ++j)
      asm volatile(
          "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %34, 0;\n\t"
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
          "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
          "%32, %33, p, 1, 1, 0, 0;\n\t}"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
            "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
            "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
            "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
          : "l"(descriptor(smem(s.a[stage]) + j * 32)), "l"(descriptor(smem(s.b[stage]) + j * 32)), "r"(i | j)
          : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(&s.empty[stage])) : "memory");
  }
  for (int i = 0; i < 32; ++i)
    s.c[16 * warp + lane / 4 + 8 * (i >> 1 & 1)][8 * (i >> 2) + 2 * (lane & 3) + (i & 1)] = d[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map_c),
                 "r"(blockIdx.y * kBlock), "r"(blockIdx.x * kBlock), "r"(smem(s.c)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
