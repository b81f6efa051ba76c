// membar, fence and createpolicy.
#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

Action nothing(Warp&, Fragment&, const Instr&, Mask) { return Action::next; }

Action memory_fence(Warp& w, Fragment&, const Instr&, Mask) {
  w.synchronize_through_memory(true, true);
  return Action::next;
}

/// fence.proxy.async: what these lanes wrote before is visible to the async proxy, and the other way round.
/// mod: [0] covers shared memory, [1] covers global memory.
Action proxy_async(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t tick = static_cast<uint32_t>(++w.cta->cluster->tick);
  for (Mask m = mask; m; m &= m - 1) {
    size_t lane = static_cast<size_t>(first_lane(m));
    if (in.mod[0]) w.fence_tick[lane] = tick;
    if (in.mod[1]) w.global_fences->async[lane] = tick;
  }
  ++w.cta->cluster->tick;
  return Action::next;
}

/// fence.proxy.tensormap::generic. mod[0]: acquire; operand: the map's address.
Action proxy_tensormap(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t tick = static_cast<uint32_t>(++w.cta->cluster->tick);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    if (in.mod[0])
      w.cta->acquired_maps[lane_address(w, in.ops[0], lane)] = tick;
    else
      w.global_fences->tensormap[static_cast<size_t>(lane)] = tick;
  }
  ++w.cta->cluster->tick;
  // Release and acquire like those of memory, at the same scope.
  w.synchronize_through_memory(in.mod[0], !in.mod[0]);
  return Action::next;
}

void decode_fence(Decode& d) {
  d.out.run = nothing;
  if (d.take("mbarrier_init")) {
    d.need_one_of({"release"});
    d.need_one_of({"cluster"});
    d.need_count(0, 0);
    return;
  }
  if (d.take("proxy")) {
    if (d.take_one_of({"async", "async::generic"}) >= 0) {
      bool global = d.take("global");
      bool shared = d.has("shared::cta") || d.has("shared::cluster") ||
                    d.has("sync_restrict::shared::cluster") || d.has("sync_restrict::shared::cta");
      d.drop({"shared::cta", "shared::cluster", "acquire", "release", "sync_restrict::shared::cluster",
              "sync_restrict::shared::cta", "cluster"});
      d.need_count(0, 0);
      d.out.mod[0] = !global;
      d.out.mod[1] = !shared;
      d.out.run = proxy_async;
      return;
    }
    if (d.take("alias")) return;
    d.need_one_of({"tensormap::generic"});
    bool acquire = d.need_one_of({"release", "acquire"}) == 1;
    d.need_one_of({"cta", "cluster", "gpu", "sys"});
    d.need_count(acquire ? 2 : 0, acquire ? 2 : 0);
    if (acquire) d.address(d.parsed(0));
    d.out.mod[0] = acquire;
    d.out.run = proxy_tensormap;
    return;
  }
  d.take_one_of({"sc", "acq_rel", "acquire", "release"});
  d.out.run = memory_fence;
  d.drop({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"});
  d.need_one_of({"cta", "cluster", "gpu", "sys"});
  d.need_count(0, 0);
}

void decode_membar(Decode& d) {
  if (d.take("proxy")) {
    d.need_one_of({"alias"});
  } else {
    d.need_one_of({"cta", "gl", "sys"});
  }
  d.need_count(0, 0);
  d.out.run = memory_fence;
}

/// A policy only hints at caching: any value will do.
Action createpolicy(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  for_lanes(mask, [&](int l) { set<uint64_t>(d, l, 0x1000000000000000ull); });
  return Action::next;
}

void decode_createpolicy(Decode& d) {
  d.need_one_of({"fractional", "range"});
  d.drop({"global", "L2", "L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::evict_unchanged"});
  d.need_type();
  d.need_count(1, 4);
  d.dst(d.parsed(0), 8, false);
  d.out.run = createpolicy;
}

}  // namespace

void register_fence(OpcodeTable& t) {
  t["fence"] = decode_fence;
  t["membar"] = decode_membar;
  t["createpolicy"] = decode_createpolicy;
}

}  // namespace gemmtune::emulator
