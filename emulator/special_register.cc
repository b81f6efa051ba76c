#include "emulator/special_register.h"

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

/// Only the lanes that are here: others of the warp may stand between such a read and its use, and the
/// temporary is one for all.
template <class F>
Action fill(Warp& w, const Instr& in, Mask mask, F value) {
  for_lanes(mask, [&](int lane) {
    uint64_t v = value(lane);
    if (in.ops[0].width == 8)
      w.reg<uint64_t>(in.ops[0])[lane] = v;
    else
      w.reg<uint32_t>(in.ops[0])[lane] = static_cast<uint32_t>(v);
  });
  return Action::next;
}

uint32_t pick(const Dim3& d, int axis) { return axis == 0 ? d.x : axis == 1 ? d.y : d.z; }

template <int kAxis>
Action tid(Warp& w, Fragment&, const Instr& in, Mask mask) {
  const Dim3& block = w.cta->cluster->launch->config.block;
  return fill(w, in, mask, [&](int lane) -> uint32_t {
    uint32_t linear = static_cast<uint32_t>(w.index) * 32 + static_cast<uint32_t>(lane);
    if (kAxis == 0) return linear % block.x;
    if (kAxis == 1) return linear / block.x % block.y;
    return linear / block.x / block.y;
  });
}

// Values that are the same for all lanes of a warp.
template <auto kValue>
Action uniform(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  uint64_t v = kValue(w, f);
  return fill(w, in, mask, [v](int) { return v; });
}

const Launch& launch(const Warp& w) { return *w.cta->cluster->launch; }

template <int kAxis>
uint64_t ntid(const Warp& w, const Fragment&) {
  return pick(launch(w).config.block, kAxis);
}
template <int kAxis>
uint64_t ctaid(const Warp& w, const Fragment&) {
  return pick(w.cta->ctaid, kAxis);
}
template <int kAxis>
uint64_t nctaid(const Warp& w, const Fragment&) {
  return pick(launch(w).config.grid, kAxis);
}
const Dim3& shape(const Warp& w) { return w.cta->cluster->place.shape; }
template <int kAxis>
uint64_t cluster_nctaid(const Warp& w, const Fragment&) {
  return pick(shape(w), kAxis);
}
template <int kAxis>
uint64_t cluster_ctaid(const Warp& w, const Fragment&) {
  return pick(w.cta->ctaid, kAxis) % pick(shape(w), kAxis);
}
template <int kAxis>
uint64_t clusterid(const Warp& w, const Fragment&) {
  return pick(w.cta->ctaid, kAxis) / pick(shape(w), kAxis);
}
template <int kAxis>
uint64_t nclusterid(const Warp& w, const Fragment&) {
  return pick(launch(w).config.grid, kAxis) / pick(shape(w), kAxis);
}

uint64_t rank(const Warp& w, const Fragment&) { return w.cta->rank; }
uint64_t cluster_size(const Warp& w, const Fragment&) { return w.cta->cluster->place.size(); }
uint64_t warp_id(const Warp& w, const Fragment&) { return static_cast<uint64_t>(w.index); }
uint64_t warp_count(const Warp& w, const Fragment&) { return launch(w).warps; }
uint64_t sm_id(const Warp& w, const Fragment&) {
  return w.cta->cluster->slot * launch(w).most_ctas + w.cta->rank;
}
uint64_t sm_count(const Warp& w, const Fragment&) { return static_cast<uint64_t>(launch(w).config.sm_count); }
uint64_t zero(const Warp&, const Fragment&) { return 0; }
uint64_t explicit_cluster(const Warp& w, const Fragment&) { return launch(w).most_ctas > 1; }
/// Time is instructions executed: it advances, and it is the same in every run.
uint64_t clock(const Warp& w, const Fragment&) { return w.cta->cluster->instructions; }
uint64_t dynamic_smem(const Warp& w, const Fragment&) { return launch(w).config.dynamic_smem_bytes; }
uint64_t total_smem(const Warp& w, const Fragment&) { return launch(w).smem_bytes - kSharedBase; }
uint64_t reserved_smem(const Warp&, const Fragment&) { return kSharedBase; }

Action laneid(Warp& w, Fragment&, const Instr& in, Mask mask) {
  return fill(w, in, mask, [](int lane) { return static_cast<uint64_t>(lane); });
}
template <int kKind>
Action lanemask(Warp& w, Fragment&, const Instr& in, Mask mask) {
  return fill(w, in, mask, [](int lane) -> uint32_t {
    uint32_t bit = 1u << lane;
    switch (kKind) {
      case 0:
        return bit;
      case 1:
        return bit - 1;
      case 2:
        return bit | (bit - 1);
      case 3:
        return ~(bit | (bit - 1));
      default:
        return ~(bit - 1);
    }
  });
}

#define AXES(text, function)                                                    \
  {text ".x", 4, uniform<function<0>>}, {text ".y", 4, uniform<function<1>>}, { \
    text ".z", 4, uniform<function<2>>                                          \
  }

constexpr SpecialRegister kRegisters[] = {
    {"%tid.x", 4, tid<0>},
    {"%tid.y", 4, tid<1>},
    {"%tid.z", 4, tid<2>},
    AXES("%ntid", ntid),
    AXES("%ctaid", ctaid),
    AXES("%nctaid", nctaid),
    AXES("%cluster_ctaid", cluster_ctaid),
    AXES("%cluster_nctaid", cluster_nctaid),
    AXES("%clusterid", clusterid),
    AXES("%nclusterid", nclusterid),
    {"%cluster_ctarank", 4, uniform<rank>},
    {"%cluster_nctarank", 4, uniform<cluster_size>},
    {"%is_explicit_cluster", 4, uniform<explicit_cluster>},
    {"%laneid", 4, laneid},
    {"%warpid", 4, uniform<warp_id>},
    {"%nwarpid", 4, uniform<warp_count>},
    {"%smid", 4, uniform<sm_id>},
    {"%nsmid", 4, uniform<sm_count>},
    {"%gridid", 8, uniform<zero>},
    {"%lanemask_eq", 4, lanemask<0>},
    {"%lanemask_lt", 4, lanemask<1>},
    {"%lanemask_le", 4, lanemask<2>},
    {"%lanemask_gt", 4, lanemask<3>},
    {"%lanemask_ge", 4, lanemask<4>},
    {"%clock", 4, uniform<clock>},
    {"%clock_hi", 4, uniform<zero>},
    {"%clock64", 8, uniform<clock>},
    {"%globaltimer", 8, uniform<clock>},
    {"%globaltimer_lo", 4, uniform<clock>},
    {"%globaltimer_hi", 4, uniform<zero>},
    {"%dynamic_smem_size", 4, uniform<dynamic_smem>},
    {"%total_smem_size", 4, uniform<total_smem>},
    {"%aggr_smem_size", 4, uniform<total_smem>},
    {"%reserved_smem_offset_begin", 4, uniform<zero>},
    {"%reserved_smem_offset_cap", 4, uniform<reserved_smem>},
    {"%reserved_smem_offset_end", 4, uniform<reserved_smem>},
};
#undef AXES

}  // namespace

int find_special_register(std::string_view name) {
  for (size_t i = 0; i < std::size(kRegisters); ++i)
    if (kRegisters[i].name == name) return static_cast<int>(i);
  return -1;
}

const SpecialRegister& special_register(int index) { return kRegisters[index]; }

Action read_shared_address_32(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t address = w.cta->rank << kRankShift | in.target;
  for_lanes(mask, [&](int lane) { w.reg<uint32_t>(in.ops[0])[lane] = address; });
  return Action::next;
}

Action read_shared_address_64(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint64_t address = w.cta->rank << kRankShift | in.target;
  for_lanes(mask, [&](int lane) { w.reg<uint64_t>(in.ops[0])[lane] = address; });
  return Action::next;
}

}  // namespace gemmtune::emulator
