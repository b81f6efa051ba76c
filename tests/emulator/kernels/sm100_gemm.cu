// A small tcgen05 GEMM for the emulator's tests: C[M,N] (f32) = A[M,K] x B[N,K]^T, f16, K-major, 128B swizzle.
// One tile of 128 x 128 a CTA (256 x 128 a pair with CTA_GROUP 2), ring of STAGES, warp-specialised, multiples of the
// tile only. Loops stay rolled: mutants are made by editing the PTX. Built for development with:
//   nvcc -ptx -std=c++17 -gencode arch=compute_100a,code=compute_100a -DCTA_GROUP=1 sm100_gemm.cu -o sm100_gemm_cg1.ptx
#include <cuda.h>
#include <cstdint>

#ifndef CTA_GROUP
#define CTA_GROUP 1
#endif
#define STRING(x) #x
#define VALUE(x) STRING(x)
#define GROUP "cta_group::" VALUE(CTA_GROUP)

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64, kStages = 3;
constexpr int kRowsB = kBlockN / CTA_GROUP;  // a CTA of a pair loads half of B
constexpr int kBytesA = kBlockM * kBlockK * 2, kBytesB = kRowsB * kBlockK * 2;

struct Shared {
  uint8_t a[kStages][kBytesA];
  uint8_t b[kStages][kBytesB];
  uint64_t full[kStages], empty[kStages], done;
  uint32_t tmem;
};

__device__ uint32_t smem(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tAGAIN:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra AGAIN;\n\t}" ::"r"(bar), "r"(parity) : "memory");
}

__device__ bool elected() {
  uint32_t yes;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(yes));
  return yes;
}

__device__ void load(uint32_t dst, const CUtensorMap* map, int k, int row, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes." GROUP " [%0], [%1, {%2, %3}], [%4];" ::
          "r"(dst), "l"(map), "r"(k), "r"(row), "r"(bar) : "memory");
}

__device__ uint64_t descriptor(uint32_t address) {
  return (uint64_t{address & 0x3ffff} >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

extern "C" __global__ void __launch_bounds__(192) gemm(const __grid_constant__ CUtensorMap map_a,
                                                       const __grid_constant__ CUtensorMap map_b, float* c, int n, int k) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t rank = 0;
  if (CTA_GROUP == 2) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

  if (warp == 0 && elected()) {
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&s.full[i])), "r"(1));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&s.empty[i])), "r"(1));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(&s.done)), "r"(1));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (CTA_GROUP == 2) {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  }
  if (warp == 1) {
    asm volatile("tcgen05.alloc." GROUP ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem(&s.tmem)), "r"(128) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit." GROUP ".sync.aligned;");
  }
  asm volatile("tcgen05.fence::before_thread_sync;");
  __syncthreads();
  if (CTA_GROUP == 2) {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  }
  asm volatile("tcgen05.fence::after_thread_sync;");
  uint32_t tmem = s.tmem;

  int steps = k / kBlockK;
  int row_a = blockIdx.x * kBlockM, row_b = blockIdx.y * kBlockN + rank * kRowsB;
  if (warp == 0 && elected()) {
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      int stage = i % kStages;
      wait(smem(&s.empty[stage]), (i / kStages & 1) ^ 1);
      uint32_t full = smem(&s.full[stage]) & 0xfeffffff;  // the even CTA's
      if (rank == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                     "r"(CTA_GROUP * (kBytesA + kBytesB)) : "memory");
      load(smem(s.a[stage]), &map_a, i * kBlockK, row_a, full);
      load(smem(s.b[stage]), &map_b, i * kBlockK, row_b, full);
    }
  } else if (warp == 1 && rank == 0 && elected()) {
    // f16 x f16 -> f32, K-major, N = 128, M = 128 or 256
    constexpr uint32_t kIdesc = 1u << 4 | (kBlockN / 8) << 17 | (kBlockM * CTA_GROUP / 16) << 24;
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      int stage = i % kStages;
      wait(smem(&s.full[stage]), i / kStages & 1);
      asm volatile("tcgen05.fence::after_thread_sync;");
#pragma unroll 1
      for (int j = 0; j < kBlockK / 16; ++j)
        asm volatile(
            "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
            "tcgen05.mma." GROUP ".kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(tmem),
            "l"(descriptor(smem(s.a[stage]) + j * 32)), "l"(descriptor(smem(s.b[stage]) + j * 32)), "r"(kIdesc),
            "r"(i | j) : "memory");
      if (CTA_GROUP == 2)
        asm volatile("tcgen05.commit." GROUP ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                         smem(&s.empty[stage])), "h"(static_cast<uint16_t>(3)) : "memory");
      else
        asm volatile("tcgen05.commit." GROUP ".mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem(&s.empty[stage]))
                     : "memory");
    }
    if (CTA_GROUP == 2)
      asm volatile("tcgen05.commit." GROUP ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                       smem(&s.done)), "h"(static_cast<uint16_t>(3)) : "memory");
    else
      asm volatile("tcgen05.commit." GROUP ".mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem(&s.done)) : "memory");
  }
  __syncwarp();
  if (warp >= 2) {
    int quarter = warp % 4;
    wait(smem(&s.done), 0);
    asm volatile("tcgen05.fence::after_thread_sync;");
    float* out = c + static_cast<size_t>(row_a + quarter * 32 + lane) * n + blockIdx.y * kBlockN;
#pragma unroll 1
    for (int col = 0; col < kBlockN; col += 8) {
      float v[8];
      asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                   : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
                   : "r"(tmem + (quarter << 21) + col));
      asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
      *reinterpret_cast<float4*>(out + col) = make_float4(v[0], v[1], v[2], v[3]);
      *reinterpret_cast<float4*>(out + col + 4) = make_float4(v[4], v[5], v[6], v[7]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;");
  }
  __syncthreads();
  if (CTA_GROUP == 2) {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  }
  if (warp == 1) {
    asm volatile("tcgen05.fence::after_thread_sync;");
    asm volatile("tcgen05.dealloc." GROUP ".sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(128));
  }
}
