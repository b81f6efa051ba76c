// mbarriers: phases, arrivals, transaction bytes. PTX ISA "mbarrier".
// A fresh barrier is in phase 0 and looks as if phase "-1" (parity 1) had completed: a consumer starts waiting for
// parity 0, a producer waits its empty barriers with parity 1 and passes the first lap.
#pragma once
#include "device/cluster.cuh"

DEVICE void mbarrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes the initialisations of this thread visible to the cluster and to the async proxy, together with the
/// barrier that follows.
DEVICE void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Announces `bytes` of TMA traffic and arrives once.
DEVICE void mbarrier_arrive_expect_tx(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// The same for a barrier that may lie in a peer (map_to_rank).
DEVICE void mbarrier_arrive_expect_tx_remote(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// `barrier` may lie in a peer (map_to_rank). Cluster scope is for data: use it where the arrival publishes what this
/// thread read or wrote with ordinary instructions.
DEVICE void mbarrier_arrive_cluster(u32 barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// `barrier` may lie in a peer. For hand-overs that publish none of this thread's own memory accesses: between
/// asynchronous units (an MMA has read, a copy may write), and of tensor memory, which tcgen05's own fences order. Cluster
/// scope would cost a fence each time, one that waits for the thread's global stores.
DEVICE void mbarrier_arrive_remote(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

DEVICE void mbarrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Returns when the phase of this parity has completed. try_wait gives up after a few microseconds, hence the loop.
DEVICE void mbarrier_wait(u32 barrier, u32 parity) {
  u32 done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}

/// As mbarrier_wait, for arrivals that come from other CTAs of the cluster.
DEVICE void mbarrier_wait_cluster(u32 barrier, u32 parity) {
  u32 done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}

/// Index and parity of a ring of kStages barriers. The parity flips when the index wraps, never per step.
template <int kStages>
struct RingPosition {
  u32 index = 0, parity = 0;
  DEVICE void advance() {
    if (++index == kStages) {
      index = 0;
      parity ^= 1;
    }
  }
};
