// Results through shared memory: registers -> swizzled box -> TMA store. PTX ISA "cp.async.bulk.tensor" (bulk_group).
#pragma once
#include "device/cluster.cuh"

/// Box at `source` to coordinates (c0 innermost). What lies outside the tensor is not written.
DEVICE void tma_store_2d(const TensorMap* map, int c0, int c1, u32 source) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(c0),
               "r"(c1), "r"(source)
               : "memory");
}

DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// At most kOpen of this thread's groups have still to read their shared memory.
template <int kOpen>
DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOpen) : "memory");
}

/// All of this thread's groups have been written.
DEVICE void bulk_wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/// Byte offset of 16-byte unit `unit` of row `row` in a box whose rows are one swizzle span long and whose start is
/// aligned to eight of them (ptx-facts 3.1).
template <int kSpan>
DEVICE u32 swizzled_offset(u32 row, u32 unit) {
  if constexpr (kSpan == 128) return row * 128 + ((unit ^ (row & 7)) << 4);
  if constexpr (kSpan == 64) return row * 64 + ((unit ^ (row >> 1 & 3)) << 4);
  static_assert(kSpan == 128 || kSpan == 64 || kSpan == 32, "a swizzle span");
  return row * 32 + ((unit ^ (row >> 2 & 1)) << 4);
}

DEVICE void store_shared_16(u32 address, const u32 (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}
