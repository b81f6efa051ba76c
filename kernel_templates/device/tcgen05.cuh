// Fifth-generation tensor cores (sm_100a, sm_103a): tensor memory, MMA, commit. PTX ISA "tcgen05".
// A function may hold one cta_group only, so every wrapper takes it as a template argument.
#pragma once
#include "device/operand_tile.cuh"

/// One converged warp (of each CTA of the pair with kCtaGroup 2). Writes the address to shared memory with a weak
/// store: a barrier must follow before other warps read it. kColumns: a power of two, 32 to 512.
template <int kCtaGroup, int kColumns>
DEVICE void tmem_alloc(u32 destination) {
  if constexpr (kCtaGroup == 1) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(destination), "n"(kColumns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
  } else {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(destination), "n"(kColumns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
  }
}

template <int kCtaGroup, int kColumns>
DEVICE void tmem_free(u32 tmem) {
  if constexpr (kCtaGroup == 1) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tmem), "n"(kColumns) : "memory");
  } else {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(tmem), "n"(kColumns) : "memory");
  }
}

/// Order tensor-memory operations around a synchronisation that other threads take part in.
DEVICE void tcgen05_fence_before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEVICE void tcgen05_fence_after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

/// Instruction descriptor of kind::f16 (ptx-facts 2.3). M and N are the pair's totals with cta_group 2.
template <int kM, int kN, Type kIn, bool kAMnMajor, bool kBMnMajor>
HOST_DEVICE constexpr u32 mma_instruction_descriptor() {
  constexpr u32 kFormat = kIn == Type::bf16 ? 1 : 0;
  return 1u << 4 /* D is f32 */ | kFormat << 7 | kFormat << 10 | u32{kAMnMajor} << 15 | u32{kBMnMajor} << 16 |
         u32{kN / 8} << 17 | u32{kM / 16} << 24;
}

/// Bit 46 is a constant of this generation; layout codes in bits 61-63: none 0, 128B 2, 64B 4, 32B 6.
template <class Tile, int kSpan>
DEVICE u64 tcgen05_descriptor(u32 address) {
  constexpr u64 kLayout = kSpan == 128 ? 2 : kSpan == 64 ? 4 : kSpan == 32 ? 6 : 0;
  return descriptor_bits(address, Tile::kLbo, Tile::kSbo) | u64{1} << 46 | kLayout << 61;
}

/// One thread (of the even CTA with kCtaGroup 2). D = A x B (+ D if accumulate). Asynchronous.
template <int kCtaGroup>
DEVICE void tcgen05_mma(u32 tmem, u64 a, u64 b, u32 instruction, bool accumulate) {
  if constexpr (kCtaGroup == 1) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "setp.ne.u32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(tmem),
        "l"(a), "l"(b), "r"(instruction), "r"(u32{accumulate})
        : "memory");
  } else {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "setp.ne.u32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(tmem),
        "l"(a), "l"(b), "r"(instruction), "r"(u32{accumulate})
        : "memory");
  }
}

/// The barrier at this offset in every CTA of `mask` gets one arrival once all MMAs that this thread issued so far are
/// complete: their shared operands have been read, their accumulators are final.
template <int kCtaGroup, bool kMulticast>
DEVICE void tcgen05_commit(u32 barrier, u16 mask) {
  if constexpr (kCtaGroup == 2) {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            barrier),
        "h"(mask)
        : "memory");
  } else if constexpr (kMulticast) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            barrier),
        "h"(mask)
        : "memory");
  } else {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                 : "memory");
  }
}

/// 32 lanes x kColumns columns: thread t of the warp gets lane t, register i gets column i (ptx-facts 4.5). The warp's
/// quarter (warp index % 4) must be that of the address' lanes. Results may be used after tmem_wait_load().
template <int kColumns>
DEVICE void tmem_load(u32 (&r)[kColumns], u32 tmem) {
  static_assert(kColumns == 16 || kColumns == 32, "the epilogue works in chunks of 16 or 32 columns");
  if constexpr (kColumns == 32) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]),
          "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15]), "=r"(r[16]),
          "=r"(r[17]), "=r"(r[18]), "=r"(r[19]), "=r"(r[20]), "=r"(r[21]), "=r"(r[22]), "=r"(r[23]), "=r"(r[24]),
          "=r"(r[25]), "=r"(r[26]), "=r"(r[27]), "=r"(r[28]), "=r"(r[29]), "=r"(r[30]), "=r"(r[31])
        : "r"(tmem));
  } else {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]),
          "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
        : "r"(tmem));
  }
}

/// 16 lanes x 2 * kHeld columns: thread t gets lane t % 16; the lower half of the warp the first kHeld columns, the upper
/// half the others.
template <int kHeld>
DEVICE void tmem_load_halves(u32 (&r)[kHeld], u32 tmem) {
  static_assert(kHeld == 8 || kHeld == 16, "the epilogue works in chunks of 16 or 32 columns");
  if constexpr (kHeld == 16) {
    asm volatile(
        "tcgen05.ld.sync.aligned.16x32bx2.x16.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16], 16;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]),
          "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
        : "r"(tmem));
  } else {
    asm volatile(
        "tcgen05.ld.sync.aligned.16x32bx2.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], 8;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
        : "r"(tmem));
  }
}

/// All loads of this warp have arrived. The registers pass through, so that no use of them can move above.
template <int kColumns>
DEVICE void tmem_wait_load(u32 (&r)[kColumns]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kColumns; ++i) asm volatile("" : "+r"(r[i]));
}
