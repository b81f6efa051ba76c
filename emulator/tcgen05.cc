// tcgen05.alloc, dealloc, relinquish, commit, wait and fence (ptx-facts 1.6, 4.1).
#include "emulator/tcgen05.h"

#include <fmt/format.h>

namespace gemmtune::emulator {

std::vector<Cta*> tcgen05_ctas(Warp& w, uint32_t cta_group) {
  if (cta_group == 1) return {w.cta};
  Cluster& cluster = *w.cta->cluster;
  uint32_t even = w.cta->rank & ~1u;
  if (even + 1 >= cluster.ctas.size())
    throw Fault(Check::illegal_instruction, "cta_group::2 needs a cluster with an even number of CTAs");
  std::vector<Cta*> pair = {cluster.ctas[even].get(), cluster.ctas[even + 1].get()};
  for (Cta* cta : pair)
    if (cta->exited)
      throw Fault(
          Check::peer_exit,
          fmt::format("CTA rank {} of the pair has exited while cta_group::2 work is issued", cta->rank));
  return pair;
}

InOrder& tensor_queue(Warp& w, int lane) {
  auto& queue = w.tensor_queues[lane];
  if (!queue) queue = std::make_unique<InOrder>();
  return *queue;
}

void check_columns(const Cta& cta, uint32_t column, uint32_t columns) {
  if (cta.tmem.allocated(column, columns)) return;
  throw Fault(Check::tmem, fmt::format("columns {} to {} of tensor memory in CTA rank {} are not allocated",
                                       column, column + columns - 1, cta.rank));
}

uint32_t take_cta_group(Decode& d) {
  uint32_t group = static_cast<uint32_t>(d.need_one_of({"cta_group::1", "cta_group::2"})) + 1;
  uint32_t& used = d.module.cta_group();
  if (used && used != group) d.fail("a kernel cannot mix cta_group::1 and cta_group::2");
  used = group;
  return group;
}

void check_tmem_at_exit(Cta& cta) {
  for (const TmemAllocation& a : cta.tmem.allocations)
    cta.cluster->report(
        Severity::race, Check::tmem, &cta, -1, a.line,
        fmt::format("{} columns of tensor memory (from column {}) were never freed", a.columns, a.column));
}

void finish_tmem_loads(Warp& w) {
  Tmem& tmem = w.cta->tmem;
  uint32_t quarter = static_cast<uint32_t>(w.index) % 4;
  uint64_t tick = ++w.cta->cluster->tick;
  for (auto [first, count] : w.touched_by_loads)
    for (uint32_t c = first; c < first + count; ++c) {
      Tmem::Cell& cell = tmem.cell(quarter, c);
      cell.handed = true;
      tmem.read(quarter, c) = {w.now(), tick, static_cast<int32_t>(cell.loads_pending)};
      cell.loads_pending = 0;
    }
  w.touched_by_loads.clear();
}

void check_hand_over(Warp& w, const Cta& cta, uint32_t column, const Tmem::Access& before, const char* what) {
  if (before.moment.event == 0 || before.moment.place == w.place) return;
  uint32_t warps = w.cta->cluster->launch->warps;
  uint32_t rank = before.moment.place / warps, warp = before.moment.place % warps;
  if (!before.moment.known_to(w.clock)) {
    report_here(
        w, Severity::race, Check::tmem,
        fmt::format("column {} of CTA rank {}: nothing orders the {} of warp {} of CTA rank {} at line {} "
                    "before this",
                    column, cta.rank, what, warp, rank, before.line));
    return;
  }
  // CUTLASS has the wait and the barrier only, and runs (ptx-facts section 5).
  const Warp& other = *w.cta->cluster->ctas[rank]->warps[warp];
  if (other.last_before_fence < before.tick)
    report_here(
        w, Severity::warning, Check::tmem,
        fmt::format("column {} of CTA rank {}: no tcgen05.fence::before_thread_sync follows the {} at line "
                    "{} before the barrier",
                    column, cta.rank, what, before.line));
  if (w.last_after_fence < before.tick)
    report_here(
        w, Severity::warning, Check::tmem,
        fmt::format("column {} of CTA rank {}: no tcgen05.fence::after_thread_sync behind the barrier that "
                    "follows the {} at line {}",
                    column, cta.rank, what, before.line));
}

namespace {

bool single_address(Warp& w, const Operand& op, Mask mask, uint64_t* value) {
  *value = lane_value(w, op, first_lane(mask));
  for (Mask m = mask; m; m &= m - 1)
    if (lane_value(w, op, first_lane(m)) != *value) return false;
  return true;
}

/// Both warps of a pair must have come: counts arrivals of each CTA. True once the peer has come as often.
bool pair_met(Warp& w, Fragment& f, uint32_t cta_group, uint64_t Tmem::*count, const char* what) {
  if (cta_group == 1) return true;
  Cluster& cluster = *w.cta->cluster;
  if (f.step == 0) {
    f.step = 1;
    f.token = ++(w.cta->tmem.*count);
    ++cluster.events;
  }
  if ((w.cta->rank ^ 1) >= cluster.ctas.size())
    throw Fault(Check::illegal_instruction, "cta_group::2 needs a cluster with an even number of CTAs");
  Cta& peer = *cluster.ctas[w.cta->rank ^ 1];
  if (peer.tmem.*count >= f.token) {
    f.step = 0;
    return true;
  }
  if (peer.exited)
    throw Fault(Check::peer_exit, fmt::format("{} waits for CTA rank {}, which has exited", what, peer.rank));
  f.wait_on(&cluster.events);
  f.describe_wait = [what, rank = peer.rank] {
    return fmt::format("{} waits for the same instruction in CTA rank {}", what, rank);
  };
  return false;
}

/// mod[0]: cta_group. Operands: destination, columns.
Action alloc(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  Tmem& tmem = w.cta->tmem;
  uint64_t columns;
  if (!single_address(w, in.ops[1], mask, &columns))
    throw Fault(Check::convergence, "the column count differs between lanes");
  if (columns < 32 || columns > 512 || (columns & (columns - 1)))
    throw Fault(Check::tmem,
                fmt::format("allocation of {} columns: must be a power of two from 32 to 512", columns));
  if (tmem.permit_relinquished) throw Fault(Check::tmem, "allocation after tcgen05.relinquish_alloc_permit");
  // Step 2: the pair has met, but columns are missing.
  if (f.step != 2 && !pair_met(w, f, in.mod[0], &Tmem::alloc_count, "tcgen05.alloc")) return Action::wait;
  bool from_top = w.cta->cluster->launch->config.tmem_from_top;
  uint32_t n = static_cast<uint32_t>(columns);
  int column;
  if (!tmem.granted.empty()) {
    column = tmem.granted.front();
    tmem.granted.erase(tmem.granted.begin());
  } else {
    column = tmem.allocate(n, from_top, in.line, in.mod[0] == 2);
    // Both allocations take effect together: the peer may be seen to own its columns before its warp runs on.
    if (in.mod[0] == 2 && column >= 0) {
      Tmem& peer = w.cta->cluster->ctas[w.cta->rank ^ 1]->tmem;
      int peer_column = peer.allocate(n, from_top, in.line, true);
      if (peer_column < 0) {
        tmem.allocations.pop_back();
        column = -1;
      } else {
        peer.granted.push_back(peer_column);
      }
    }
  }
  if (column < 0) {
    // It would block until somebody frees columns; this CTA has the SM for itself.
    f.step = 2;
    f.wait_on(&tmem.version);
    f.describe_wait = [&tmem, columns] {
      uint32_t taken = 0;
      std::string who;
      for (const TmemAllocation& a : tmem.allocations) {
        taken += a.columns;
        who += fmt::format("; {} at line {}", a.columns, a.line);
      }
      return fmt::format("tcgen05.alloc of {} columns cannot succeed: {} of 512 are taken{}", columns, taken,
                         who);
    };
    return Action::wait;
  }
  f.step = 0;
  if (columns > tmem.last_columns)
    report_here(w, Severity::warning, Check::tmem,
                fmt::format("allocation of {} columns after one of {}: sizes must not grow", columns,
                            tmem.last_columns));
  tmem.last_columns = static_cast<uint32_t>(columns);
  uint32_t address = static_cast<uint32_t>(column);
  SharedPlace p = shared_place(w, lane_address(w, in.ops[0], first_lane(mask)), 4, true);
  if (p.offset % 4) throw Fault(Check::misaligned, "destination of tcgen05.alloc is not aligned to 4 bytes");
  ++w.cta->cluster->tick;
  note_generic_write(w, first_lane(mask), *p.cta, p.offset, 4);
  std::memcpy(p.cta->smem.data() + p.offset, &address, 4);
  return Action::next;
}

/// mod[0]: cta_group. Operands: address, columns.
Action dealloc(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  uint64_t address, columns;
  if (!single_address(w, in.ops[0], mask, &address) || !single_address(w, in.ops[1], mask, &columns))
    throw Fault(Check::convergence, "the operands of tcgen05.dealloc differ between lanes");
  if (!pair_met(w, f, in.mod[0], &Tmem::dealloc_count, "tcgen05.dealloc")) return Action::wait;
  Tmem& tmem = w.cta->tmem;
  for (size_t i = 0; i < tmem.allocations.size(); ++i) {
    const TmemAllocation& a = tmem.allocations[i];
    if (a.column != address || a.columns != columns) continue;
    Cluster& cluster = *w.cta->cluster;
    for (uint32_t quarter = 0; quarter < 4; ++quarter)
      for (uint32_t c = a.column; c < a.column + a.columns; ++c) {
        const Tmem::Cell& cell = tmem.cell(quarter, c);
        if (!knows(w, cell.writer))
          report_here(w, Severity::race, Check::tmem,
                      fmt::format("frees tensor memory that the {} at line {} may still write",
                                  cluster.async.operation(cell.writer).what,
                                  cluster.async.operation(cell.writer).line));
        if (cell.loads_pending)
          report_here(w, Severity::race, Check::tmem,
                      fmt::format("frees tensor memory that the tcgen05.ld at line {} still reads: "
                                  "tcgen05.wait::ld is missing",
                                  cell.loads_pending));
        check_hand_over(w, *w.cta, c, tmem.read(quarter, c), "tcgen05.ld");
      }
    tmem.allocations.erase(tmem.allocations.begin() + static_cast<ptrdiff_t>(i));
    ++tmem.version;
    ++cluster.events;
    return Action::next;
  }
  throw Fault(
      Check::tmem,
      fmt::format("tcgen05.dealloc of {} columns at {:#x}: no such allocation (freed twice, or another "
                  "address or size)",
                  columns, address));
}

Action relinquish(Warp& w, Fragment& f, const Instr&, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  w.cta->tmem.permit_relinquished = true;
  return Action::next;
}

/// mod: [0] cta_group, [1] multicast. Operands: barrier, cta mask.
Action commit(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    InOrder& queue = tensor_queue(w, lane);
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[0], lane), false);
    Cluster& cluster = *w.cta->cluster;
    std::vector<Cta*> targets;
    if (in.mod[1]) {
      uint32_t ctas = static_cast<uint32_t>(lane_value(w, in.ops[1], lane)) & 0xffff;
      if (ctas == 0 || ctas >> cluster.ctas.size())
        throw Fault(Check::illegal_instruction,
                    fmt::format("cta mask {:#x} in a cluster of {}", ctas, cluster.ctas.size()));
      for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank)
        if (ctas >> rank & 1) targets.push_back(cluster.ctas[rank].get());
    } else {
      targets.push_back(bar.cta);
    }
    for (Cta* cta : targets) mbarrier_for(w, *cta, bar.offset);
    uint64_t sequence = queue.issued;
    auto describe = [&] {
      return fmt::format("commit to mbarrier {:#x}{}", bar.offset,
                         targets.size() > 1 ? fmt::format(" in {} CTAs", targets.size()) : "");
    };
    submit_traced(w, &queue, describe, [targets, bar, &queue, sequence, passed = w.release()] {
      Covered covered{0, &queue, sequence};
      for (Cta* cta : targets) mbarrier_arrive(*cta, bar.offset, 1, &passed, &covered);
    });
  }
  return Action::next;
}

/// mod[0]: ld (else st).
Action wait(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  InOrder& queue = in.mod[0] ? w.tmem_loads : w.tmem_stores;
  if (queue.completed < queue.issued) {
    f.wait_on(&w.async_version);
    f.describe_wait = [load = in.mod[0]] {
      return std::string(load ? "waits for its tcgen05.ld" : "waits for its tcgen05.st");
    };
    return Action::wait;
  }
  queue.observed = queue.issued;
  if (in.mod[0]) {
    finish_tmem_loads(w);
    w.erase_pending([](const PendingRegisters& p) { return p.is_tcgen05; });
    return Action::next;
  }
  Tmem& tmem = w.cta->tmem;
  uint32_t quarter = static_cast<uint32_t>(w.index) % 4;
  uint64_t tick = ++w.cta->cluster->tick;
  for (auto [first, count] : w.touched_by_stores)
    for (uint32_t c = first; c < first + count; ++c) {
      Tmem::Cell& cell = tmem.cell(quarter, c);
      cell.handed = true;
      tmem.stored(quarter, c) = {w.now(), tick, static_cast<int32_t>(cell.store_pending)};
      cell.store_pending = 0;
    }
  w.touched_by_stores.clear();
  return Action::next;
}

/// mod[0]: after (else before).
Action fence(Warp& w, Fragment&, const Instr& in, Mask) {
  uint64_t tick = ++w.cta->cluster->tick;
  (in.mod[0] ? w.last_after_fence : w.last_before_fence) = tick;
  return Action::next;
}

void decode_tcgen05(Decode& d) {
  if (!d.module.program().has_target("sm_100") && !d.module.program().has_target("sm_103"))
    d.fail("tcgen05 exists on sm_100a and sm_103a only");
  if (d.take("mma")) {
    decode_tcgen05_mma(d);
  } else if (d.take("ld")) {
    decode_tcgen05_load_store(d, true);
  } else if (d.take("st")) {
    decode_tcgen05_load_store(d, false);
  } else if (d.take("cp")) {
    decode_tcgen05_cp(d);
  } else if (d.take("commit")) {
    d.out.mod[0] = take_cta_group(d);
    d.need_one_of({"mbarrier::arrive::one"});
    d.take("shared::cluster");
    d.out.mod[1] = d.take("multicast::cluster");
    d.need_type();
    d.need_count(d.out.mod[1] ? 2 : 1, d.out.mod[1] ? 2 : 1);
    d.address(d.parsed(0));
    if (d.out.mod[1]) d.src_at_least(d.parsed(1), 4);
    d.out.run = commit;
  } else if (int which = d.take_one_of({"wait::ld", "wait::st"}); which >= 0) {
    d.need_one_of({"sync"});
    d.need_one_of({"aligned"});
    d.out.mod[0] = which == 0;
    d.out.run = wait;
  } else if (int side = d.take_one_of({"fence::before_thread_sync", "fence::after_thread_sync"}); side >= 0) {
    d.out.mod[0] = side == 1;
    d.out.run = fence;
  } else if (d.take("alloc")) {
    d.out.mod[0] = take_cta_group(d);
    d.need_one_of({"sync"});
    d.need_one_of({"aligned"});
    d.take("shared::cta");
    d.need_type();
    d.need_count(2, 2);
    d.address(d.parsed(0));
    d.src(d.parsed(1), 4);
    d.out.run = alloc;
  } else if (d.take("dealloc")) {
    d.out.mod[0] = take_cta_group(d);
    d.need_one_of({"sync"});
    d.need_one_of({"aligned"});
    d.need_type();
    d.need_count(2, 2);
    d.src(d.parsed(0), 4);
    d.src(d.parsed(1), 4);
    d.out.run = dealloc;
  } else if (d.take("relinquish_alloc_permit")) {
    d.out.mod[0] = take_cta_group(d);
    d.need_one_of({"sync"});
    d.need_one_of({"aligned"});
    d.out.run = relinquish;
  } else {
    // tcgen05.shift: its row order is described in figures only (ptx-facts has none), so it is refused.
    d.fail("this tcgen05 instruction is not supported");
  }
}

}  // namespace

void register_tcgen05(OpcodeTable& t) { t["tcgen05"] = decode_tcgen05; }

}  // namespace gemmtune::emulator
