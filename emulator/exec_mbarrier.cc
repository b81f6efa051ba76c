// mbarrier instructions (PTX ISA 9.7.13.15; ptx-facts 1.1).
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

// mod: [0] space (0 generic, 1 own CTA, 2 cluster), [1] flavour, [2] has count or bytes operand.

SharedPlace barrier_place(Warp& w, const Instr& in, const Operand& address, int lane) {
  uint64_t a = lane_address(w, address, lane);
  if (in.mod[0] == 0 && a >> kWindowShift != kSharedWindow >> kWindowShift)
    throw Fault(Check::mbarrier, fmt::format("generic address {:#x} is not in shared memory", a));
  return shared_cta(w, a, in.mod[0] == 1);
}

Action init(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    SharedPlace p = barrier_place(w, in, in.ops[0], lane);
    mbarrier_init(w, *p.cta, p.offset, static_cast<uint32_t>(lane_value(w, in.ops[1], lane)), in.line);
  }
  return Action::next;
}

Action inval(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    SharedPlace p = barrier_place(w, in, in.ops[0], first_lane(m));
    mbarrier_invalidate(*p.cta, p.offset);
  }
  return Action::next;
}

// mod[3] of arrivals and waits: .relaxed, which passes nothing on.
enum Flavour : uint32_t { kArrive, kArriveDrop, kArriveExpect, kDropExpect, kExpect, kComplete };

/// Operands: state (or none), address, count or bytes (or none).
Action arrive(Warp& w, Fragment&, const Instr& in, Mask mask) {
  Clock released;
  const Clock* passed = in.mod[3] ? nullptr : &released;
  if (passed) released = w.release();
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    SharedPlace p = barrier_place(w, in, in.ops[1], lane);
    if (in.ops[0].kind != Operand::Kind::none)
      set<uint64_t>(dst_of(w, in.ops[0]), lane, mbarrier_at(*p.cta, p.offset).memory);
    mbarrier_for(w, *p.cta, p.offset);
    uint32_t value = in.mod[2] ? static_cast<uint32_t>(lane_value(w, in.ops[2], lane)) : 1;
    switch (in.mod[1]) {
      case kArrive: {
        mbarrier_arrive(*p.cta, p.offset, value, passed);
        // The only arrival that a phase waits for completes it: whoever makes it knows.
        const Mbarrier& b = mbarrier_at(*p.cta, p.offset);
        if (b.count == value && b.tx_bytes == 0)
          w.clock.raise(b.place, b.base + static_cast<uint32_t>(b.phase));
        break;
      }
      case kArriveDrop:
        mbarrier_arrive_drop(*p.cta, p.offset, value, passed);
        break;
      case kArriveExpect:
        mbarrier_expect_tx(*p.cta, p.offset, value);
        mbarrier_arrive(*p.cta, p.offset, 1, passed);
        break;
      case kDropExpect:
        mbarrier_expect_tx(*p.cta, p.offset, value);
        mbarrier_arrive_drop(*p.cta, p.offset, 1, passed);
        break;
      case kExpect:
        mbarrier_expect_tx(*p.cta, p.offset, value);
        break;
      default:
        mbarrier_complete_tx(*p.cta, p.offset, value, passed);
        break;
    }
  }
  return Action::next;
}

std::string describe(Cta& cta, uint32_t offset, bool parity, uint64_t wanted) {
  auto it = cta.mbarriers.find(offset);
  if (it == cta.mbarriers.end()) return "waits on an mbarrier that is gone";
  const Mbarrier& b = it->second;
  return fmt::format(
      "waits on mbarrier {:#x} (initialised at line {}) for {} {}; it is in phase {} (parity {}), {} of {} "
      "arrivals and {} transaction bytes are missing",
      offset, b.init_line, parity ? "parity" : "the phase after", parity ? wanted : (wanted >> 40 & 0xffff),
      b.phase, b.phase & 1, b.pending, b.count, b.tx_bytes);
}

/// mod: [1] by parity, [2] test only. Operands: p, address, parity or state.
Action wait(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  Mask done = 0;
  const uint64_t* counter = nullptr;
  bool same = true;
  SharedPlace first{};
  uint64_t wanted = 0;
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    SharedPlace p = barrier_place(w, in, in.ops[1], lane);
    uint64_t value = lane_value(w, in.ops[2], lane);
    if (in.mod[1] && value > 1)
      throw Fault(Check::mbarrier,
                  fmt::format("mbarrier {:#x}: parity {} is neither 0 nor 1", p.offset, value));
    if (counter && p.offset == first.offset && p.cta == first.cta && value == wanted) {
      if (done & mask & -mask) done |= m & -m;  // as the first lane
      continue;
    }
    bool complete = in.mod[1]
                        ? mbarrier_test_parity(w, *p.cta, p.offset, static_cast<uint32_t>(value), !in.mod[3])
                        : mbarrier_test_state(w, *p.cta, p.offset, value, !in.mod[3]);
    if (complete) done |= m & -m;
    const uint64_t* phase = &p.cta->mbarriers.at(p.offset).phase;
    if (counter && counter != phase) same = false;
    if (!counter) counter = phase, first = p, wanted = value;
  }
  Cluster& cluster = *w.cta->cluster;
  if (!done) {
    // try_wait may return false at any time (measured: after 3.9 us), so a kernel must loop; `random` tries
    // that.
    bool give_up = in.mod[2] || (cluster.launch->config.schedule.policy == SchedulePolicy::random &&
                                 (cluster.random() & 1));
    if (!give_up) {
      if (f.state == Fragment::State::ready && f.counter == nullptr)
        trace(w, TraceEvent::Kind::wait_begin, fmt::format("mbarrier {:#x}", first.offset));
      f.wait_on(same ? counter : &cluster.events);
      f.describe_wait = [cta = first.cta, offset = first.offset, parity = in.mod[1] != 0, wanted] {
        return describe(*cta, offset, parity, wanted);
      };
      return Action::wait;
    }
  } else if (f.counter) {
    trace(w, TraceEvent::Kind::wait_end, fmt::format("mbarrier {:#x}", first.offset));
  }
  f.counter = nullptr;
  set_predicate(w, in.ops[0], mask, done);
  return done == mask ? Action::next : Action::yield;
}

Action pending_count(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    set<uint32_t>(d, lane, static_cast<uint32_t>(lane_value(w, in.ops[1], lane) >> 20 & 0xfffff));
  }
  return Action::next;
}

void decode_wait(Decode& d, bool test) {
  d.out.mod[1] = d.take("parity");
  d.out.mod[2] = test;
  if (d.out.mod[0] == 2) d.fail("waits are local: .shared::cluster is not allowed");
  d.need_count(3, test ? 3 : 4);
  d.dst(d.parsed(0), 0, false);
  d.address(d.parsed(1));
  d.src(d.parsed(2), d.out.mod[1] ? 4 : 8);
  if (d.count() == 4) d.src(d.parsed(3), 4);
  d.out.run = wait;
}

void decode_arrive(Decode& d, bool drop) {
  bool expect = d.take("expect_tx");
  d.take("noComplete");
  d.out.mod[1] = expect ? (drop ? kDropExpect : kArriveExpect) : drop ? kArriveDrop : kArrive;
  size_t at = 0;
  // The state may be missing altogether in the remote forms of older PTX.
  if (d.parsed(0).kind == ParsedOperand::Kind::address) {
    d.none();
  } else {
    if (d.out.mod[0] == 2 && d.parsed(0).kind != ParsedOperand::Kind::sink)
      d.fail("a remote arrival returns no state");
    d.dst(d.parsed(at++), 8);
  }
  d.need_count(at + (expect ? 2 : 1), at + 2);
  d.address(d.parsed(at++));
  d.out.mod[2] = at < d.count();
  if (at < d.count()) d.src(d.parsed(at), 4);
  d.out.run = arrive;
}

void decode_mbarrier(Decode& d) {
  d.out.mod[3] = d.take_one_of({"release", "acquire", "relaxed"}) == 2;
  d.take_one_of({"cta", "cluster"});
  int space = d.take_one_of({"shared", "shared::cta", "shared::cluster"});
  d.out.mod[0] = space < 0 ? 0 : space == 2 ? 2 : 1;
  ScalarType t = d.need_type();
  if (t != ScalarType::b64) d.fail("mbarrier objects are .b64");
  if (d.take("init")) {
    d.need_count(2, 2);
    d.address(d.parsed(0));
    d.src(d.parsed(1), 4);
    d.out.run = init;
  } else if (d.take("inval")) {
    d.need_count(1, 1);
    d.address(d.parsed(0));
    d.out.run = inval;
  } else if (d.take("arrive")) {
    decode_arrive(d, false);
  } else if (d.take("arrive_drop")) {
    decode_arrive(d, true);
  } else if (d.take("try_wait")) {
    decode_wait(d, false);
  } else if (d.take("test_wait")) {
    decode_wait(d, true);
  } else if (d.take("pending_count")) {
    d.need_count(2, 2);
    d.dst(d.parsed(0), 4, false);
    d.src(d.parsed(1), 8);
    d.out.run = pending_count;
  } else {
    d.out.mod[1] = d.need_one_of({"expect_tx", "complete_tx"}) == 0 ? kExpect : kComplete;
    d.out.mod[2] = 1;
    d.need_count(2, 2);
    d.none();
    d.address(d.parsed(0));
    d.src(d.parsed(1), 4);
    d.out.run = arrive;
  }
}

}  // namespace

void register_mbarrier(OpcodeTable& t) { t["mbarrier"] = decode_mbarrier; }

}  // namespace gemmtune::emulator
