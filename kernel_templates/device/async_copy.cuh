// Copies by ordinary threads, 16 bytes each: what came before TMA. PTX ISA "cp.async".
// They write through the generic proxy: before the tensor core reads, every thread that copied needs
// fence_async_shared() and then a barrier (seed 001_9537dc342b5761a6.txt, section 3, left it out and was lucky).
#pragma once
#include "device/cluster.cuh"

/// `inside` false: 16 zeros, and nothing is read.
DEVICE void cp_async_16(u32 destination, const void* source, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(inside ? 16 : 0)
               : "memory");
}

DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// At most kOpen of this thread's groups are still on their way.
template <int kOpen>
DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}
