// cp.async: sixteen bytes or less a lane, generic proxy, in groups of the issuing thread (PTX ISA 9.7.9.25).
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

/// Copies of one thread into different parts of one granule do not meet, which the granule's record cannot
/// tell.
void allow_neighbours(Warp& w, int lane, const SharedPlace& to, uint32_t bytes) {
  Shadow& s = to.cta->shadow[to.offset >> kShadowShift];
  bool mine = false;
  for (const SmallCopy& p : w.small_places[lane]) {
    if (p.offset < to.offset + bytes && to.offset < p.offset + p.bytes) return;
    mine |= p.operation == s.async_writer;
  }
  if (mine) s.async_writer = 0;
}

/// mod: [0] bytes, [1] has a source size, [2] has an ignore-source predicate. Operands: dst, src, size or
/// predicate.
Action copy_async(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t bytes = in.mod[0];
  Cluster& cluster = *w.cta->cluster;
  uint32_t op = cluster.async.add_operation("cp.async", in.line, w.cta->rank, w.index, nullptr);
  Mask ignore = in.mod[2] ? w.predicate(in.ops[2]) : 0;
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint64_t target = lane_address(w, in.ops[0], lane), source = lane_address(w, in.ops[1], lane);
    if (target % bytes || source % bytes)
      throw Fault(Check::misaligned, fmt::format("lane {}: {:#x} or {:#x} is not a multiple of {}", lane,
                                                 target, source, bytes));
    SharedPlace to = shared_place(w, target, bytes, true);
    uint32_t size = in.mod[1] ? static_cast<uint32_t>(lane_value(w, in.ops[2], lane)) : bytes;
    if (size > bytes) throw Fault(Check::illegal_instruction, "cp.async source size is larger than the copy");
    if (ignore >> lane & 1) size = 0;
    const uint8_t* from = size ? global_place(w, source, size, false) : nullptr;
    if (bytes < 1u << kShadowShift) allow_neighbours(w, lane, to, bytes);
    note_async_write(w, *to.cta, to.offset, bytes, op);
    w.small_places[lane].push_back({op, to.offset, bytes});
    ++w.small_issued[lane];
    submit(w, &w.small_places[lane], [&w, lane, to, from, size, bytes] {
      uint8_t* at = to.cta->smem.data() + to.offset;
      if (size) std::memcpy(at, from, size);
      std::memset(at + size, 0, bytes - size);
      ++w.small_done[lane];
      ++w.async_version;
    });
  }
  return Action::next;
}

Action copy_commit(Warp& w, Fragment&, const Instr&, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    w.small_marks[lane].push_back(w.small_issued[lane]);
  }
  return Action::next;
}

/// What has landed becomes a generic write of this moment: a fence.proxy.async before the wait does not
/// count.
void observe_small(Warp& w, int lane, uint64_t issued, Moment moment) {
  auto& places = w.small_places[lane];
  Cluster& cluster = *w.cta->cluster;
  uint64_t first = w.small_issued[lane] - places.size();
  ++cluster.tick;
  while (!places.empty() && first < issued) {
    const SmallCopy& p = places.front();
    OperationRecord& r = cluster.async.operation(p.operation);
    r.observed = true;
    if (r.told.empty() || r.told.back().event != moment.event) r.told.push_back(moment);
    for (uint32_t g = p.offset >> kShadowShift; g <= (p.offset + p.bytes - 1) >> kShadowShift; ++g) {
      Shadow& s = w.cta->shadow[g];
      if (s.async_writer != p.operation) continue;
      s.generic_tick = static_cast<uint32_t>(cluster.tick);
      s.generic_event = moment.event;
      s.generic_bytes = 0xffff;
      s.generic_thread = static_cast<uint16_t>(w.index * 32 + lane);
      s.generic_rank = static_cast<uint16_t>(w.cta->rank);
      s.generic_line = r.line;
    }
    places.pop_front();
    ++first;
  }
}

/// mod[0]: groups that may stay open, UINT32_MAX for wait_all.
Action copy_wait(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    auto& marks = w.small_marks[lane];
    uint64_t need = 0;
    if (in.mod[0] == UINT32_MAX)
      need = w.small_issued[lane];
    else if (marks.size() > in.mod[0])
      need = marks[marks.size() - 1 - in.mod[0]];
    if (w.small_done[lane] < need) {
      f.wait_on(&w.async_version);
      f.describe_wait = [] { return std::string("waits for its cp.async copies"); };
      return Action::wait;
    }
  }
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    auto& marks = w.small_marks[lane];
    uint64_t need = 0;
    if (in.mod[0] == UINT32_MAX)
      need = w.small_issued[lane];
    else if (marks.size() > in.mod[0])
      need = marks[marks.size() - 1 - in.mod[0]];
    observe_small(w, lane, need, w.now());
    while (!marks.empty() && marks.front() <= need && marks.size() > in.mod[0]) marks.pop_front();
  }
  return Action::next;
}

/// cp.async.mbarrier.arrive: the barrier is signalled when the thread's earlier copies have landed. mod[0]:
/// noinc.
Action copy_arrive(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[0], lane), true);
    // Without .noinc the pending count is raised first, so that the arrival is additional.
    if (!in.mod[0]) mbarrier_raise_pending(*bar.cta, bar.offset);
    uint64_t issued = w.small_issued[lane];
    std::vector<uint32_t> operations;
    for (const SmallCopy& p : w.small_places[lane])
      if (operations.empty() || operations.back() != p.operation) operations.push_back(p.operation);
    Moment moment = w.now();
    submit(w, &w.small_places[lane], [&w, lane, bar, issued, operations, moment, passed = w.release()] {
      mbarrier_cover(*bar.cta, bar.offset, operations);
      observe_small(w, lane, issued, moment);
      mbarrier_arrive(*bar.cta, bar.offset, 1, &passed);
    });
  }
  return Action::next;
}

}  // namespace

void decode_small_copy(Decode& d) {
  d.take("async");
  if (d.take("commit_group")) {
    d.out.run = copy_commit;
    return;
  }
  if (d.take("wait_all")) {
    d.out.mod[0] = UINT32_MAX;
    d.out.run = copy_wait;
    return;
  }
  if (d.take("wait_group")) {
    d.need_count(1, 1);
    d.out.mod[0] = static_cast<uint32_t>(d.immediate(d.parsed(0)));
    d.out.run = copy_wait;
    return;
  }
  if (d.take("mbarrier")) {
    if (!d.take("arrive")) d.fail("unknown form of cp.async.mbarrier");
    d.out.mod[0] = d.take("noinc");
    d.take_one_of({"shared", "shared::cta"});
    d.need_type();
    d.need_count(1, 1);
    d.address(d.parsed(0));
    d.out.run = copy_arrive;
    return;
  }
  d.need_one_of({"ca", "cg"});
  d.need_one_of({"shared", "shared::cta"});
  d.need_one_of({"global"});
  bool hint = d.take("L2::cache_hint");
  d.drop({"L2::64B", "L2::128B", "L2::256B"});
  d.need_count(3, 5);
  d.address(d.parsed(0));
  d.address(d.parsed(1));
  int64_t bytes = d.immediate(d.parsed(2));
  if (bytes != 4 && bytes != 8 && bytes != 16) d.fail("cp.async copies 4, 8 or 16 bytes");
  d.out.mod[0] = static_cast<uint32_t>(bytes);
  size_t rest = d.count() - 3 - (hint ? 1 : 0);
  if (rest > 1) d.fail("wrong number of operands");
  if (rest == 1) {
    if (d.register_width(d.parsed(3)) == 0) {
      d.src(d.parsed(3), 0);
      d.out.mod[2] = 1;
    } else {
      d.src(d.parsed(3), 4);
      d.out.mod[1] = 1;
    }
  }
  d.out.run = copy_async;
}

}  // namespace gemmtune::emulator
