// Tensor copies from global to shared memory. PTX ISA "cp.async.bulk.tensor".
// Coordinates are element indices, innermost first. Elements outside the tensor arrive as zeros and count as bytes.
#pragma once
#include "device/cluster.cuh"

DEVICE void prefetch_tensor_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// kCtaGroup 2: `barrier` may be in the even CTA of the pair although `destination` is here.
/// kMulticast: the box and the signal go to the same offsets in every CTA of `mask`.
template <int kCtaGroup, bool kMulticast>
DEVICE void tma_load_2d(u32 destination, const TensorMap* map, int c0, int c1, u32 barrier, u16 mask) {
  if constexpr (kCtaGroup == 2 && kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(barrier), "h"(mask)
        : "memory");
  } else if constexpr (kCtaGroup == 2) {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(barrier)
        : "memory");
  } else if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(barrier), "h"(mask)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
        "l"(map), "r"(c0), "r"(c1), "r"(barrier)
        : "memory");
  }
}
