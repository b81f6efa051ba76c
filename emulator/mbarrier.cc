#include "emulator/mbarrier.h"

#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

constexpr uint32_t kMaxCount = (1u << 20) - 1;

std::string where(const Cta& cta, uint32_t offset) {
  return fmt::format("mbarrier {:#x} of CTA rank {}", offset, cta.rank);
}

/// What the eight bytes hold: enough to notice that something else wrote over them.
uint64_t image(const Mbarrier& b) {
  return 0x8000000000000000ull | (b.phase & 0xffff) << 40 | uint64_t{b.pending & 0xfffff} << 20 |
         (b.count & 0xfffff);
}

void store_image(Cta& cta, uint32_t offset, Mbarrier& b) {
  b.memory = image(b);
  std::memcpy(cta.smem.data() + offset, &b.memory, 8);
}

void complete_if_done(Cta& cta, uint32_t offset, Mbarrier& b) {
  if (b.pending == 0 && b.tx_bytes == 0) {
    ++b.phase;
    b.pending = b.count;
    Moment done{b.place, b.base + static_cast<uint32_t>(b.phase)};
    for (const Covered& c : b.covered) {
      if (c.operation) cta.cluster->async.operation(c.operation).told.push_back(done);
      if (c.queue) c.queue->tell(c.sequence, done);
    }
    b.covered_before = std::move(b.covered);
    b.covered.clear();
    b.arriving.raise(done.place, done.event);
    b.completed.join(b.arriving);
    std::swap(b.last_arrivals, b.arriving);
    b.arriving.at.clear();
    if (cta.cluster->launch->config.trace) {
      TraceEvent e;
      e.kind = TraceEvent::Kind::phase;
      e.time = cta.cluster->instructions;
      e.cta = cta.ctaid;
      e.what = fmt::format("mbarrier {:#x} phase {} complete", offset, b.phase - 1);
      cta.cluster->launch->config.trace(e);
    }
  }
  ++cta.cluster->events;
  store_image(cta, offset, b);
}

void check_exited(Cta& cta, uint32_t offset, const char* what) {
  if (cta.exited)
    throw Fault(Check::peer_exit,
                fmt::format("{} on {}, which has already exited", what, where(cta, offset)));
}

/// Parity tells a phase from its neighbours only. Whoever waits for phase n by parity must know that n - 1 is
/// complete, or n - 2 satisfies the wait as well; and n + 1 must not complete before it has looked, or it
/// waits for ever (ptx-facts 1.1).
void check_lap(Warp& w, Cta& cta, uint32_t offset, Mbarrier& b) {
  uint64_t known = std::max(w.clock.of(b.place), b.base) - b.base;
  if (known + 1 < b.phase)
    report_here(
        w, Severity::race, Check::mbarrier,
        fmt::format("{}: sees phase {} complete without knowing of phase {}: nothing orders this wait behind "
                    "that phase, and by parity the one before it passes as well, a lap early",
                    where(cta, offset), b.phase - 1, b.phase - 2));
  for (Mbarrier::Waiter& waiter : b.waiters)
    if (waiter.seen.place == w.place) {
      // The CuTe tutorials let every warp wait where only one gates the reuse; they run.
      if (b.phase == waiter.phase + 1 && !waiter.seen.known_to(b.last_arrivals))
        report_here(
            w, Severity::warning, Check::mbarrier,
            fmt::format("{}: phase {} could complete before this warp had looked at phase {}: no "
                        "arrival is ordered behind that look, and parity cannot tell two phases apart",
                        where(cta, offset), b.phase - 1, waiter.phase - 1));
      waiter = {w.now(), b.phase};
      return;
    }
  b.waiters.push_back({w.now(), b.phase});
}

void observe(Warp& w, Cta& cta, Mbarrier& b, bool acquires) {
  for (const Covered& c : b.covered_before) {
    if (c.operation) cta.cluster->async.operation(c.operation).observed = true;
    if (c.queue) c.queue->observe(c.sequence, ++cta.cluster->tick);
  }
  b.covered_before.clear();
  if (b.phase > b.observed) b.observed = b.phase;
  if (acquires)
    w.clock.join(b.completed);
  else
    w.clock.raise(b.place, b.base + static_cast<uint32_t>(b.phase));
}

}  // namespace

void mbarrier_init(Warp& w, Cta& cta, uint32_t offset, uint32_t count, int line) {
  if (count == 0 || count > kMaxCount)
    throw Fault(Check::mbarrier, fmt::format("{}: count {} is not 1 to 2^20-1", where(cta, offset), count));
  if (offset % 8)
    throw Fault(Check::misaligned, fmt::format("{} is not aligned to 8 bytes", where(cta, offset)));
  if (offset < kSharedBase || offset + 8 > cta.smem.size())
    throw Fault(Check::out_of_bounds,
                fmt::format("{} lies outside shared memory ({} bytes)", where(cta, offset), cta.smem.size()));
  if (auto it = cta.mbarriers.find(offset); it != cta.mbarriers.end()) {
    uint64_t now;
    std::memcpy(&now, cta.smem.data() + offset, 8);
    // Memory that something else has overwritten since is a barrier no more.
    if (it->second.valid && now == it->second.memory &&
        (it->second.phase > 0 || it->second.pending != it->second.count || it->second.tx_bytes != 0))
      cta.cluster->report(Severity::warning, Check::mbarrier, &cta, -1, line,
                          fmt::format("{} is initialised again without mbarrier.inval (first at line {})",
                                      where(cta, offset), it->second.init_line));
  }
  Mbarrier b;
  b.count = b.pending = count;
  b.init_line = line;
  b.initialised = w.now();
  // A blocked waiter holds a pointer to the phase counter, so the node is kept.
  Mbarrier& slot = cta.mbarriers[offset];
  b.place = slot.init_line ? slot.place : cta.cluster->next_place++;
  b.base = slot.base + static_cast<uint32_t>(slot.phase) + 1;
  b.phase = 0;
  slot = std::move(b);
  ++cta.cluster->events;
  store_image(cta, offset, slot);
}

void mbarrier_invalidate(Cta& cta, uint32_t offset) {
  Mbarrier& b = mbarrier_at(cta, offset);
  b.valid = false;  // kept: a blocked waiter may look at its phase
  ++b.phase;
  ++cta.cluster->events;
}

Mbarrier& mbarrier_at(Cta& cta, uint32_t offset) {
  if (offset % 8)
    throw Fault(Check::misaligned, fmt::format("{} is not aligned to 8 bytes", where(cta, offset)));
  auto it = cta.mbarriers.find(offset);
  if (it == cta.mbarriers.end() || !it->second.valid)
    throw Fault(Check::mbarrier, fmt::format("{} is not initialised", where(cta, offset)));
  uint64_t now;
  std::memcpy(&now, cta.smem.data() + offset, 8);
  if (now != it->second.memory)
    throw Fault(Check::mbarrier, fmt::format("the memory of {} (initialised at line {}) was overwritten",
                                             where(cta, offset), it->second.init_line));
  return it->second;
}

Mbarrier& mbarrier_for(Warp& w, Cta& cta, uint32_t offset) {
  Mbarrier& b = mbarrier_at(cta, offset);
  if (cta.cluster->launch->check_races && !b.initialised.known_to(w.clock))
    report_here(
        w, Severity::race, Check::mbarrier,
        fmt::format("{} is used before its initialisation at line {} is known to be over: no barrier, or "
                    "for a peer no cluster barrier, orders the two",
                    where(cta, offset), b.init_line));
  return b;
}

void mbarrier_arrive(Cta& cta, uint32_t offset, uint32_t count, const Clock* passed, const Covered* covered) {
  check_exited(cta, offset, "arrive");
  Mbarrier& b = mbarrier_at(cta, offset);
  if (count == 0 || count > b.pending)
    throw Fault(
        Check::mbarrier,
        fmt::format("{}: arrival of {} with {} of {} pending in phase {} (more arrivals than the barrier was "
                    "initialised for)",
                    where(cta, offset), count, b.pending, b.count, b.phase));
  b.pending -= count;
  if (passed) b.arriving.join(*passed);
  if (covered) b.covered.push_back(*covered);
  complete_if_done(cta, offset, b);
}

void mbarrier_arrive_drop(Cta& cta, uint32_t offset, uint32_t count, const Clock* passed) {
  Mbarrier& b = mbarrier_at(cta, offset);
  if (count > b.count)
    throw Fault(Check::mbarrier, fmt::format("{}: drops more than its count", where(cta, offset)));
  uint32_t reload = b.count - count;
  mbarrier_arrive(cta, offset, count, passed);
  Mbarrier& after = mbarrier_at(cta, offset);
  if (after.pending == after.count && after.count != reload) after.pending = reload;
  after.count = reload;
  store_image(cta, offset, after);
}

void mbarrier_expect_tx(Cta& cta, uint32_t offset, int64_t bytes) {
  check_exited(cta, offset, "expect_tx");
  Mbarrier& b = mbarrier_at(cta, offset);
  if (bytes >= kMaxTransactionBytes || b.tx_bytes + bytes > kMaxTransactionBytes)
    throw Fault(Check::mbarrier,
                fmt::format("{}: tx-count overflow: {} bytes expected, {} outstanding (limit 2^20)",
                            where(cta, offset), bytes, b.tx_bytes));
  b.tx_bytes += bytes;
  // expect_tx alone cannot complete a phase: an arrival is still pending, or the phase would have completed
  // before.
  ++cta.cluster->events;
  store_image(cta, offset, b);
}

void mbarrier_complete_tx(Cta& cta, uint32_t offset, int64_t bytes, const Clock* passed,
                          const Covered* covered) {
  check_exited(cta, offset, "complete_tx");
  Mbarrier& b = mbarrier_at(cta, offset);
  b.tx_bytes -= bytes;
  if (b.tx_bytes < -kMaxTransactionBytes)
    throw Fault(Check::mbarrier,
                fmt::format("{}: tx-count underflow: {} bytes more arrived than were expected",
                            where(cta, offset), -b.tx_bytes));
  if (passed) b.arriving.join(*passed);
  if (covered) b.covered.push_back(*covered);
  complete_if_done(cta, offset, b);
}

void mbarrier_raise_pending(Cta& cta, uint32_t offset) {
  Mbarrier& b = mbarrier_at(cta, offset);
  if (b.pending >= kMaxCount)
    throw Fault(Check::mbarrier, fmt::format("{}: pending count overflow", where(cta, offset)));
  ++b.pending;
  store_image(cta, offset, b);
}

void mbarrier_cover(Cta& cta, uint32_t offset, const std::vector<uint32_t>& operations) {
  Mbarrier& b = mbarrier_at(cta, offset);
  for (uint32_t id : operations) b.covered.push_back({id, nullptr, 0});
}

bool mbarrier_test_parity(Warp& w, Cta& cta, uint32_t offset, uint32_t parity, bool acquires) {
  Mbarrier& b = mbarrier_for(w, cta, offset);
  if ((b.phase & 1) == (parity & 1)) return false;
  if (b.phase > 0 && cta.cluster->launch->check_races) check_lap(w, cta, offset, b);
  observe(w, cta, b, acquires);
  return true;
}

bool mbarrier_test_state(Warp& w, Cta& cta, uint32_t offset, uint64_t state, bool acquires) {
  Mbarrier& b = mbarrier_for(w, cta, offset);
  if ((b.phase & 0xffff) == (state >> 40 & 0xffff)) return false;
  observe(w, cta, b, acquires);
  return true;
}

}  // namespace gemmtune::emulator
