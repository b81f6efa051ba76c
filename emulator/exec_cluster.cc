// mapa, getctarank, cluster launch control, setmaxnreg, griddepcontrol (ptx-facts 1.2, 1.4, 1.5).
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

/// Arithmetic only: a rank outside the cluster gives an address that faults when it is used (measured: rank
/// << 24 up to 31 in a cluster of 2). Compilers rely on that: every lane maps its own number, two of them
/// arrive. mod[0]: generic 64-bit address.
template <class T>
Action mapa(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint64_t a = lane_value(w, in.ops[1], lane), rank = lane_value(w, in.ops[2], lane);
    uint64_t low = (a & kSharedOffsetMask) | rank << kRankShift;
    set<T>(d, lane, static_cast<T>((a & ~0xffffffffull) | low));
  }
  return Action::next;
}

void decode_mapa(Decode& d) {
  d.take("shared::cluster");
  ScalarType t = d.need_type();
  d.need_count(3, 3);
  int width = size_bytes(t);
  d.dst(d.parsed(0), width, false);
  d.src(d.parsed(1), width);
  d.src(d.parsed(2), 4);
  d.out.run = width == 8 ? mapa<uint64_t> : mapa<uint32_t>;
}

Action getctarank(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  for_lanes(mask, [&](int l) {
    set<uint32_t>(d, l, static_cast<uint32_t>(lane_value(w, in.ops[1], l) & 0xffffffff) >> kRankShift);
  });
  return Action::next;
}

void decode_getctarank(Decode& d) {
  d.take("shared::cluster");
  ScalarType t = d.need_type();
  d.need_count(2, 2);
  d.dst(d.parsed(0), 4, false);
  d.src(d.parsed(1), size_bytes(t));
  d.out.run = getctarank;
}

// --- clusterlaunchcontrol ---

/// The answer as this emulator lays it out; PTX leaves it opaque.
struct CancelResponse {
  uint32_t x, y, z, canceled;
};

/// mod[0]: multicast to all CTAs.
Action try_cancel(Warp& w, Fragment&, const Instr& in, Mask mask) {
  if (std::popcount(mask) != 1)
    throw Fault(Check::illegal_instruction, "clusterlaunchcontrol.try_cancel by more than one thread");
  int lane = first_lane(mask);
  SharedPlace dst = shared_place(w, lane_address(w, in.ops[0], lane), 16, false);
  SharedPlace bar = shared_cta(w, lane_address(w, in.ops[1], lane), false);
  if (dst.offset % 16) throw Fault(Check::misaligned, "the response must be aligned to 16 bytes");
  Cluster& cluster = *w.cta->cluster;
  if (cluster.cancel_failed)
    throw Fault(Check::illegal_instruction,
                "another try_cancel after one that returned nothing is undefined");
  for (const auto& cta : cluster.ctas)
    if (cta->exited) throw Fault(Check::peer_exit, "try_cancel by a cluster with an exited CTA is undefined");
  std::vector<Cta*> targets;
  if (in.mod[0])
    for (const auto& cta : cluster.ctas) targets.push_back(cta.get());
  else
    targets.push_back(dst.cta);
  uint32_t op =
      cluster.async.add_operation("clusterlaunchcontrol.try_cancel", in.line, w.cta->rank, w.index, nullptr);
  for (Cta* cta : targets) note_async_write(w, *cta, dst.offset, 16, op);
  submit(w, nullptr, [&cluster, targets, dst, bar, op, passed = w.release()] {
    CancelResponse r{0, 0, 0, 0};
    auto& pending = cluster.launch->pending[cluster.slot];
    if (!pending.empty()) {
      Dim3 first = pending.front().first_ctaid();
      // CTAs that will never run hold nothing back: a grid that depends on this one may start early.
      cluster.launch->ctas_without_trigger -= pending.front().size();
      pending.pop_front();
      r = {first.x, first.y, first.z, 1};
    } else {
      cluster.cancel_failed = true;
    }
    for (Cta* cta : targets) {
      std::memcpy(cta->smem.data() + dst.offset, &r, 16);
      Covered covered{op, nullptr, 0};
      mbarrier_complete_tx(*cta, bar.offset, 16, &passed, &covered);
    }
  });
  return Action::next;
}

Action is_canceled(Warp& w, Fragment&, const Instr& in, Mask mask) {
  const uint8_t* a = w.read(in.ops[1]);
  Mask yes = 0;
  for_lanes(mask, [&](int l) {
    CancelResponse r;
    std::memcpy(&r, a + 16 * l, 16);
    if (r.canceled == 1) yes |= 1u << l;
  });
  set_predicate(w, in.ops[0], mask, yes);
  return Action::next;
}

/// mod[0]: first axis, mod[1]: axes. Operands: destinations, response.
Action first_ctaid(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t n = in.mod[1];
  const uint8_t* a = w.read(in.ops[n]);
  for_lanes(mask, [&](int l) {
    uint32_t words[4];
    std::memcpy(words, a + 16 * l, 16);
    words[3] = 0;
    for (uint32_t i = 0; i < n; ++i)
      if (in.ops[i].kind != Operand::Kind::none) set<uint32_t>(dst_of(w, in.ops[i]), l, words[in.mod[0] + i]);
  });
  return Action::next;
}

void decode_launch_control(Decode& d) {
  if (d.take("try_cancel")) {
    d.need_one_of({"async"});
    d.take("shared::cta");
    d.need_one_of({"mbarrier::complete_tx::bytes"});
    d.out.mod[0] = d.take("multicast::cluster::all");
    d.need_type();
    d.need_count(2, 2);
    d.address(d.parsed(0));
    d.address(d.parsed(1));
    d.out.run = try_cancel;
    return;
  }
  d.need_one_of({"query_cancel"});
  if (d.take("is_canceled")) {
    d.take("pred");
    d.need_type();
    d.need_count(2, 2);
    d.dst(d.parsed(0), 0, false);
    d.src(d.parsed(1), 16);
    d.out.run = is_canceled;
    return;
  }
  int axis = d.take_one_of({"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
  if (axis < 0) {
    d.need_one_of({"get_first_ctaid"});
    d.need_one_of({"v4"});
  }
  d.need_type();
  d.need_type();
  d.need_count(2, 2);
  auto parts = Decode::parts(d.parsed(0));
  if (parts.size() != (axis < 0 ? 4u : 1u)) d.fail("wrong number of vector elements");
  for (const ParsedOperand* p : parts) d.dst(*p, 4);
  d.src(d.parsed(1), 16);
  d.out.mod[0] = axis < 0 ? 0 : static_cast<uint32_t>(axis);
  d.out.mod[1] = static_cast<uint32_t>(parts.size());
  d.out.run = first_ctaid;
}

// --- setmaxnreg ---

/// Registers a thread starts with: .maxnreg, or what .maxntid leaves of the SM's 65536, a multiple of 8.
int launch_registers(const Launch& launch) {
  const Function& f = *launch.function;
  if (f.max_registers > 0) return f.max_registers;
  uint32_t threads = f.required_block[0] ? f.required_block[0] * f.required_block[1] * f.required_block[2]
                                         : f.max_block[0] * f.max_block[1] * f.max_block[2];
  if (threads == 0) return 0;
  return std::min(255, static_cast<int>(65536 / threads)) / 8 * 8;
}

/// mod[0]: inc; mod[1]: count. The pool belongs to the CTA; inc blocks until others have given enough back.
Action setmaxnreg(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  Cta& cta = *w.cta;
  int count = static_cast<int>(in.mod[1]);
  if (cta.warp_registers.empty()) {
    int start = launch_registers(*cta.cluster->launch);
    if (start == 0) {
      report_here(w, Severity::warning, Check::illegal_instruction,
                  "setmaxnreg in a kernel without .maxntid or .maxnreg may be ignored by ptxas");
      return Action::next;
    }
    cta.warp_registers.assign(cta.warps.size(), start);
  }
  int& have = cta.warp_registers[static_cast<size_t>(w.index)];
  if (in.mod[0]) {
    int need = std::max(0, count - have) * 32;
    if (need > cta.register_pool) {
      f.wait_on(&cta.register_version);
      f.describe_wait = [&cta, need] {
        return fmt::format("setmaxnreg.inc waits for {} registers, {} are free", need, cta.register_pool);
      };
      return Action::wait;
    }
    cta.register_pool -= need;
    have = std::max(have, count);
  } else {
    cta.register_pool += std::max(0, have - count) * 32;
    have = std::min(have, count);
    ++cta.register_version;
    ++cta.cluster->events;
  }
  return Action::next;
}

void decode_setmaxnreg(Decode& d) {
  d.out.mod[0] = d.need_one_of({"inc", "dec"}) == 0;
  d.need_one_of({"sync"});
  d.need_one_of({"aligned"});
  d.need_type();
  d.need_count(1, 1);
  int64_t count = d.immediate(d.parsed(0));
  if (count < 24 || count > 256 || count % 8)
    d.fail("the register count must be a multiple of 8 in 24 to 256");
  d.out.mod[1] = static_cast<uint32_t>(count);
  d.out.run = setmaxnreg;
}

// --- griddepcontrol ---

/// Returns at once where no grid ahead is running (2 cycles on an H200).
Action wait_for_grid(Warp& w, Fragment& f, const Instr&, Mask) {
  Launch& launch = *w.cta->cluster->launch;
  if (!launch.prerequisite_pending) return Action::next;
  f.wait_on(&launch.prerequisite_done);
  f.describe_wait = [] { return std::string("waits for the grid ahead (griddepcontrol.wait)"); };
  return Action::wait;
}

/// One thread speaks for its CTA. It promises nothing about memory.
Action launch_dependents(Warp& w, Fragment&, const Instr&, Mask) {
  trigger_dependents(*w.cta);
  w.cta->cluster->pause = true;
  return Action::yield;
}

}  // namespace

void trigger_dependents(Cta& cta) {
  if (cta.triggered) return;
  cta.triggered = true;
  --cta.cluster->launch->ctas_without_trigger;
}

void register_cluster(OpcodeTable& t) {
  t["mapa"] = decode_mapa;
  t["getctarank"] = decode_getctarank;
  t["clusterlaunchcontrol"] = decode_launch_control;
  t["setmaxnreg"] = decode_setmaxnreg;
  t["griddepcontrol"] = [](Decode& d) {
    bool waits = d.need_one_of({"wait", "launch_dependents"}) == 0;
    d.need_count(0, 0);
    d.out.run = waits ? wait_for_grid : launch_dependents;
  };
}

}  // namespace gemmtune::emulator
