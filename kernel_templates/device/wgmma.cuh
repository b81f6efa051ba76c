// Warpgroup MMA (sm_90a). PTX ISA "wgmma". The MMA itself is rendered into the preamble for the variant's tile_n and
// element type (wgmma_tile_n), because its register list has tile_n / 2 operands.
#pragma once
#include "device/operand_tile.cuh"

/// Before the first wgmma, and whenever its registers were touched by other instructions.
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Until at most kPending newest groups are unfinished. Finished groups have read their shared operands.
template <int kPending>
DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Ties the accumulators to this point: without it the compiler may read them before the wait above it.
template <int kCount>
DEVICE void wgmma_pin(float (&acc)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

/// Layout code in bits 62-63: none 0, 128B 1, 64B 2, 32B 3.
template <class Tile, int kSpan>
DEVICE u64 wgmma_descriptor(u32 address) {
  constexpr u64 kLayout = kSpan == 128 ? 1 : kSpan == 64 ? 2 : kSpan == 32 ? 3 : 0;
  return descriptor_bits(address, Tile::kLbo, Tile::kSbo) | kLayout << 62;
}

template <int kRegisters>
DEVICE void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
DEVICE void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
