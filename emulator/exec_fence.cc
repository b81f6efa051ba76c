// membar, fence and createpolicy.
#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

Action nothing(Warp&, Fragment&, const Instr&, Mask) { return Action::next; }

/// fence.proxy.async: what these lanes wrote before is visible to the async proxy, and the other way round.
Action proxy_async(Warp& w, Fragment&, const Instr&, Mask mask) {
  uint32_t tick = static_cast<uint32_t>(++w.cta->cluster->tick);
  for (Mask m = mask; m; m &= m - 1) w.fence_tick[first_lane(m)] = tick;
  ++w.cta->cluster->tick;
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
      // .global concerns global memory only, which the emulator does not check.
      bool global = d.take("global");
      d.drop({"shared::cta", "shared::cluster", "acquire", "release", "sync_restrict::shared::cluster",
              "sync_restrict::shared::cta", "cluster"});
      d.need_count(0, 0);
      d.out.run = global ? nothing : proxy_async;
      return;
    }
    if (d.take("alias")) return;
    d.need_one_of({"tensormap::generic"});
    bool acquire = d.need_one_of({"release", "acquire"}) == 1;
    d.need_one_of({"cta", "cluster", "gpu", "sys"});
    d.need_count(acquire ? 2 : 0, acquire ? 2 : 0);
    if (acquire) d.address(d.parsed(0));
    return;
  }
  d.take_one_of({"sc", "acq_rel", "acquire", "release"});
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
  d.out.run = nothing;
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
