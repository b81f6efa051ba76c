// Transaction barriers in shared memory (PTX ISA, "mbarrier").
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/clock.h"

namespace gemmtune::emulator {

struct Cluster;
struct Cta;
struct InOrder;
struct Warp;

/// Work whose completion a phase stands for: an operation, or everything of a queue up to a number.
struct Covered {
  uint32_t operation = 0;
  InOrder* queue = nullptr;
  uint64_t sequence = 0;
};

struct Mbarrier {
  uint32_t count = 0;     ///< arrivals of a phase
  uint32_t pending = 0;   ///< still missing in this phase
  int64_t tx_bytes = 0;   ///< expected minus completed
  uint64_t phase = 0;     ///< completed phases; parity of the current one is its lowest bit
  uint64_t observed = 0;  ///< highest phase number (counted from 1) whose completion a waiter saw
  int32_t init_line = 0;
  Moment initialised;
  bool valid = true;
  uint64_t memory = 0;                           ///< the eight bytes as they must stand in shared memory
  std::vector<Covered> covered, covered_before;  ///< by the current phase, by the one completed last
  uint32_t place = 0;                            ///< in clocks; its events are `base` + completed phases
  uint32_t base = 0;                             ///< grows when the memory is initialised again
  Clock arriving;                                ///< of the current phase
  Clock last_arrivals;                           ///< of the phase completed last
  Clock completed;                               ///< of all completed phases
  /// Where each warp was when it last saw a phase complete.
  struct Waiter {
    Moment seen;
    uint64_t phase = 0;  ///< completed phases then
  };
  std::vector<Waiter> waiters;
};

/// tx-count is limited to 2^20 - 1 bytes an operation and 2^20 outstanding (ptx-facts 1.1, measured).
constexpr int64_t kMaxTransactionBytes = 1 << 20;

/// All throw Fault where the barrier is not initialised, an arrival or the tx-count under- or overflows.
void mbarrier_init(Warp&, Cta&, uint32_t offset, uint32_t count, int line);
void mbarrier_invalidate(Cta&, uint32_t offset);
Mbarrier& mbarrier_at(Cta&, uint32_t offset);
/// The same for an instruction of this warp, which must be ordered behind the initialisation.
Mbarrier& mbarrier_for(Warp&, Cta&, uint32_t offset);
/// `passed`: what those who see the phase complete get to know; nullptr for .relaxed.
void mbarrier_arrive(Cta&, uint32_t offset, uint32_t count, const Clock* passed,
                     const Covered* covered = nullptr);
void mbarrier_arrive_drop(Cta&, uint32_t offset, uint32_t count, const Clock* passed);
void mbarrier_expect_tx(Cta&, uint32_t offset, int64_t bytes);
void mbarrier_complete_tx(Cta&, uint32_t offset, int64_t bytes, const Clock* passed,
                          const Covered* covered = nullptr);
/// One more arrival is needed in the current phase (cp.async.mbarrier.arrive without .noinc).
void mbarrier_raise_pending(Cta&, uint32_t offset);
/// The current phase also stands for these operations.
void mbarrier_cover(Cta&, uint32_t offset, const std::vector<uint32_t>& operations);
/// True when the phase of this parity has completed; marks what it covered as observed.
bool mbarrier_test_parity(Warp&, Cta&, uint32_t offset, uint32_t parity, bool acquires);
bool mbarrier_test_state(Warp&, Cta&, uint32_t offset, uint64_t state, bool acquires);

}  // namespace gemmtune::emulator
