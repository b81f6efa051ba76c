// Who am I: lanes, warps, CTAs of a cluster. PTX ISA "elect.sync", "barrier.cluster", "mapa".
#pragma once
#include "device/types.cuh"

DEVICE u32 shared_address(const void* pointer) { return static_cast<u32>(__cvta_generic_to_shared(pointer)); }

/// True in exactly one lane of a converged warp.
DEVICE bool elect_one() {
  u32 elected;
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "elect.sync _|p, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(elected));
  return elected != 0;
}

DEVICE u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

DEVICE u32 cluster_size() {
  u32 size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

DEVICE u32 cluster_id() {
  u32 id;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  return id;
}

DEVICE u32 cluster_count() {
  u32 count;
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  return count;
}

/// Address in CTA `rank` of this cluster of the shared variable that lies at `address` here.
DEVICE u32 map_to_rank(u32 address, u32 rank) {
  u32 mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// Every thread of every CTA of the cluster; warps must be converged. Does not order asynchronous operations.
DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Warps of the CTA that make up kThreads threads; kId 1 to 15.
template <int kId, int kThreads>
DEVICE void named_barrier() {
  asm volatile("bar.sync %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
}

/// The four warps of a consumer warpgroup; `group` 0 to 14.
DEVICE void warpgroup_sync(u32 group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

/// A barrier over the CTA alone where the cluster is one CTA: cheaper, and what a reader expects there.
template <int kClusterSize>
DEVICE void sync_all() {
  if constexpr (kClusterSize > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }
}

/// Programmatic dependent launch. Everything before: the part of a kernel that does not touch what the launch before it
/// in the stream may still write or read. Then this CTA waits for that launch to end (at once, without the attribute),
/// and allows the launch after it to start in turn. PTX ISA "griddepcontrol".
DEVICE void wait_for_previous_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
