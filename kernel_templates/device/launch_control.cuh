// Taking over clusters that have not started yet: the hardware's dynamic tile scheduler. PTX ISA
// "clusterlaunchcontrol", ptx-facts 1.4.
#pragma once
#include "device/mbarrier.cuh"

/// Asks for one cluster. The 16-byte answer and its 16 transaction bytes arrive at these offsets in every CTA of the
/// cluster. After an answer that says "none left", asking again is undefined.
template <int kClusterSize>
DEVICE void cancel_next_cluster(u32 answer, u32 barrier) {
  if constexpr (kClusterSize > 1) {
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%0], [%1];" ::"r"(answer),
        "r"(barrier)
        : "memory");
  } else {
    asm volatile(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
            answer),
        "r"(barrier)
        : "memory");
  }
}

/// True if a cluster was taken over; `first_cta` is then the index of its first CTA along x.
DEVICE bool cancelled_cluster(u32 answer, u32& first_cta) {
  u32 taken;
  asm volatile(
      "{\n\t.reg .b128 response;\n\t.reg .pred p;\n\t"
      "ld.shared.b128 response, [%2];\n\t"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t"
      "mov.u32 %1, 0;\n\t"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, response;\n\t}"
      : "=r"(taken), "=r"(first_cta)
      : "r"(answer)
      : "memory");
  return taken != 0;
}

/// Reads of this thread come before what the async proxy writes to the same place later.
DEVICE void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
