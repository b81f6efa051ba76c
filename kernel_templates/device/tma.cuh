// Tensor copies from global to shared memory. PTX ISA "cp.async.bulk.tensor".
// Coordinates are element indices, innermost first. Elements outside the tensor arrive as zeros and count as bytes.
#pragma once
#include "device/cluster.cuh"

DEVICE void prefetch_tensor_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// What L2 is to do with the lines of a copy: 0 as with any other, 1 let them go first, 2 keep them longest. PTX ISA
/// "createpolicy". The value goes with every copy; one made at run time costs the same as none.
DEVICE u64 l2_policy(u32 eviction) {
  u64 policy;
  if (eviction == 1) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else if (eviction == 2) {
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  } else {
    policy = 0x1000000000000000;
  }
  return policy;
}

/// How a box travels: where its bytes are counted, who gets it, what L2 makes of it.
struct Delivery {
  u32 barrier;  ///< with kCtaGroup 2 it may be in the even CTA of the pair although the destination is here
  u16 mask;     ///< kMulticast: box and signal go to the same offsets in every CTA of it
  u64 policy;   ///< l2_policy()
};

template <int kCtaGroup, bool kMulticast>
DEVICE void tma_load_2d(u32 destination, const TensorMap* map, int c0, int c1, const Delivery& by) {
  if constexpr (kCtaGroup == 2 && kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(by.barrier), "h"(by.mask), "l"(by.policy)
        : "memory");
  } else if constexpr (kCtaGroup == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(by.barrier), "l"(by.policy)
        : "memory");
  } else if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(by.barrier), "h"(by.mask), "l"(by.policy)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(by.barrier), "l"(by.policy)
        : "memory");
  }
}

/// A box on its way from DRAM to L2, no further; nothing waits for it. PTX ISA "cp.async.bulk.prefetch.tensor".
DEVICE void tma_prefetch_2d(const TensorMap* map, int c0, int c1, u64 policy) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.L2::cache_hint [%0, {%1, %2}], %3;" ::"l"(map), "r"(c0),
               "r"(c1), "l"(policy)
               : "memory");
}
