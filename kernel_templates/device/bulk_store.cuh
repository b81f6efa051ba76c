// Results through shared memory: registers -> swizzled box -> TMA store. PTX ISA "cp.async.bulk.tensor" (bulk_group).
#pragma once
#include "device/swizzle.cuh"

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

DEVICE void store_shared_16(u32 address, const u32 (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}
