// The machine while a kernel runs: launch, cluster, CTA, warp, and the lanes of a warp that stand at one
// instruction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/address_space.h"
#include "emulator/async.h"
#include "emulator/diagnosis.h"
#include "emulator/emulator.h"
#include "emulator/global_memory.h"
#include "emulator/global_writes.h"
#include "emulator/mbarrier.h"
#include "emulator/program.h"
#include "emulator/shadow.h"
#include "emulator/tmem.h"

namespace gemmtune::emulator {

struct Cta;
struct Cluster;

struct Frame {
  uint32_t return_pc;
  const CallSite* call;
};

/// Lanes of a warp that stand at the same instruction. Lanes of one warp may be in several fragments; those
/// that meet at one instruction merge again.
struct Fragment {
  enum class State : uint8_t { unused, ready, waiting, converging };
  State state = State::unused;
  uint8_t step = 0;  ///< of an instruction that arrives first and waits then
  Mask mask = 0;
  uint32_t pc = 0;
  uint32_t turns = 0;                 ///< quanta used up; fewer go first
  const uint64_t* counter = nullptr;  ///< waiting: wakes when it differs from `seen`
  uint64_t seen = 0;
  uint64_t token = 0;
  std::function<std::string()> describe_wait;
  std::vector<Frame> stack;

  void wait_on(const uint64_t* c) {
    counter = c;
    seen = *c;
  }
};

/// A register range that a tcgen05.ld or wgmma in flight will write.
struct PendingRegisters {
  uint32_t offset, bytes;
  int line;
  bool is_tcgen05;
  uint64_t sequence;  ///< in Warp::tmem_loads or Warp::wgmma_queue
};

/// Bulk copies of one thread, closed into groups by commit_group.
struct ThreadGroups {
  struct Copy {
    uint32_t operation;
    bool read = false, written = false;
  };
  std::vector<std::shared_ptr<Copy>> open;  ///< since the last commit
  std::deque<std::vector<std::shared_ptr<Copy>>> committed;
};

/// A cp.async whose completion its thread has not waited for.
struct SmallCopy {
  uint32_t operation, offset, bytes;
};

struct Warp {
  Cta* cta = nullptr;
  int index = 0;  ///< in the CTA
  Mask live = 0, initial = 0;
  std::unique_ptr<uint8_t[]> registers;
  std::unique_ptr<uint8_t[]> local;  ///< 32 frames
  std::array<Fragment, 32> fragments;
  uint32_t used = 0;   ///< bit set of fragments
  Clock clock;         ///< what this warp is entitled to know
  uint32_t place = 0;  ///< its own in every clock
  // Found to be known last; what is known stays so.
  uint32_t known_operation = 0;
  const InOrder* known_queue = nullptr;
  uint64_t known_sequence = 0;  ///< of that queue
  uint64_t version = 0;         ///< bumped when lanes exit, move or merge: what converging fragments wait on
  const GlobalMemory::Allocation* hint = nullptr;
  const Instr* current = nullptr;

  std::array<uint32_t, 32> fence_tick{};  ///< last fence.proxy.async of each lane, for shared memory
  std::unique_ptr<GlobalFences> global_fences = std::make_unique<GlobalFences>();
  Mask warpsync_arrived = 0, warpsync_released = 0;
  Mask cluster_arrived = 0;   ///< in the current phase of barrier.cluster
  Mask cluster_may_wait = 0;  ///< arrived in a completed phase, not yet waited

  // Asynchronous state of the warp.
  InOrder tmem_loads, tmem_stores, wgmma_queue;
  std::deque<uint64_t> wgmma_groups;  ///< wgmma_queue.issued at each commit_group not yet waited for
  /// What the warp had done before the first wgmma of its latest groups, by number in wgmma_queue.
  std::deque<std::pair<uint64_t, Clock>> wgmma_starts;
  uint64_t async_version = 0;  ///< bumped by every completion that a wait_group may look at
  std::vector<PendingRegisters> pending_registers;
  std::vector<uint16_t> pending_index;  ///< by register offset / 64: place in pending_registers + 1, or 0
  void add_pending(const PendingRegisters& p);
  template <class F>
  void erase_pending(F done);
  std::array<ThreadGroups, 32> bulk_groups;  ///< cp.async.bulk
  // cp.async of each lane: counts of copies, the count at each commit_group, and where they write.
  std::array<uint64_t, 32> small_issued{}, small_done{};
  std::array<std::deque<uint64_t>, 32> small_marks;
  std::array<std::deque<SmallCopy>, 32> small_places;
  std::map<int, std::unique_ptr<InOrder>> tensor_queues;  ///< tcgen05 work of each lane
  std::vector<std::pair<uint32_t, uint32_t>> touched_by_loads,
      touched_by_stores;          ///< TMEM (column, columns) since the wait
  uint64_t last_after_fence = 0;  ///< tick of tcgen05.fence::after_thread_sync
  uint64_t last_before_fence = 0;

  Moment now() const { return {place, clock.of(place)}; }
  /// What an arrival or an asynchronous operation passes on; what comes later is not part of it.
  Clock release() {
    Clock passed = clock;
    ++clock.at[place];
    return passed;
  }
  /// Release and acquire through memory: atomics, fences, volatile and ordered accesses. One clock a cluster
  /// stands for all locations, so that no order is missed; some that is not there is assumed.
  void synchronize_through_memory(bool acquires, bool releases);

  template <class T>
  T* reg(const Operand& op);
  const uint8_t* read(const Operand& op) const;
  Mask predicate(const Operand& op) const;
};

struct NamedBarrier {
  uint32_t expected = 0;  ///< threads; 0: nobody there
  uint32_t arrived = 0;
  uint64_t generation = 0;
  Clock arriving, completed;
  uint32_t reduce_count = 0, reduce_and = 1, reduce_or = 0;
  uint32_t result_count = 0, result_and = 0, result_or = 0;
};

/// B of the wgmma that a warpgroup is at.
struct WgmmaPanel {
  uint64_t sequence = 0;
  std::vector<float> values;
};

struct Cta {
  Cluster* cluster = nullptr;
  uint32_t rank = 0;
  Dim3 ctaid;
  std::vector<uint8_t> smem;
  std::vector<Shadow> shadow;  ///< one a 16 bytes
  /// Readers of granules that several unordered warps read: (event, line) by place. Index 0 is unused.
  std::vector<std::vector<std::pair<uint32_t, int32_t>>> reader_sets;
  std::vector<uint32_t> free_reader_sets;
  std::unordered_map<uint64_t, uint32_t> acquired_maps;  ///< tick of the tensormap acquire, by address
  std::unordered_map<uint32_t, Mbarrier> mbarriers;
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<NamedBarrier, 16> barriers;
  uint64_t barrier_version = 0;
  uint32_t live_threads = 0;
  bool exited = false;
  bool triggered = false;  ///< griddepcontrol.launch_dependents, or exited
  Tmem tmem;
  int register_pool = 0;  ///< freed by setmaxnreg.dec
  std::vector<int> warp_registers;
  uint64_t register_version = 0;
  std::vector<WgmmaPanel> wgmma_panels;  ///< one a warpgroup
};

struct Launch;

/// Where a cluster lies in the grid of clusters of its own shape.
struct ClusterPlace {
  Dim3 shape;  ///< CTAs
  Dim3 at;

  Dim3 first_ctaid() const { return {at.x * shape.x, at.y * shape.y, at.z * shape.z}; }
  uint32_t size() const { return shape.x * shape.y * shape.z; }
};

struct Cluster {
  Launch* launch = nullptr;
  uint32_t slot = 0;
  ClusterPlace place;
  std::vector<std::unique_ptr<Cta>> ctas;
  AsyncEngine async;
  std::mt19937_64 random;
  std::vector<uint64_t> executed;  ///< per pc
  uint64_t instructions = 0;
  uint32_t trace_ids = 0;
  uint64_t events = 0;  ///< anything another thread could notice
  uint64_t tick = 1;    ///< order of accesses and fences
  size_t next_warp = 0;
  uint32_t next_place = 0;  ///< in clocks
  Clock memory_clock;
  GlobalWrites global_writes;
  // barrier.cluster
  Clock cluster_arriving, cluster_completed;
  uint32_t cluster_arrived = 0;
  uint64_t cluster_phase = 0;
  std::vector<Diagnosis> findings;
  std::map<std::pair<int, int>, size_t> finding_index;
  bool failed = false;
  bool lane_warned = false;
  bool pause = false;          ///< step returns: the stream may go on
  bool cancel_failed = false;  ///< clusterlaunchcontrol found nothing left
  uint64_t last_event_instructions = 0, last_events = 0;

  enum class Status { progress, blocked, finished };
  /// Runs until nothing can go on without new work from outside, everything has exited, or the budget is
  /// used.
  Status step(uint64_t budget);
  void report(Severity severity, Check check, const Cta* cta, int warp, int line, const std::string& message);
  void fail(Check check, const Cta* cta, int warp, int line, const std::string& message) {
    report(Severity::error, check, cta, warp, line, message);
    failed = true;
  }
  Cta& cta_of(uint32_t rank) { return *ctas[rank]; }
  void deadlock_report();
};

/// The CTA no longer holds back the grids that depend on this one.
void trigger_dependents(Cta& cta);

/// Everything the clusters of one launch share; written before they start, except where noted.
struct Launch {
  const Program* program = nullptr;
  const Function* function = nullptr;
  LaunchConfig config;
  GlobalMemory* memory = nullptr;
  std::vector<uint8_t>* module_memory = nullptr;
  std::vector<uint8_t> params;
  uint32_t smem_bytes = 0;  ///< reserved, static and dynamic
  uint32_t threads = 0, warps = 0;
  uint32_t most_ctas = 1;  ///< of a cluster
  bool check_races = true;
  /// Clusters not yet started, by slot: clusterlaunchcontrol takes from its own slot's list.
  std::vector<std::deque<ClusterPlace>> pending;
  std::function<void(const std::string&)> print;
  /// griddepcontrol: CTAs that have neither asked for the dependents nor exited; as the dependent, whether
  /// the grid ahead is still running, and what to wait on.
  std::atomic<uint64_t> ctas_without_trigger{0};
  bool prerequisite_pending = false;
  uint64_t prerequisite_done = 0;
  GlobalWrites global_writes;                              ///< of clusters that communicate
  std::vector<std::unique_ptr<GlobalFences>> kept_fences;  ///< of finished warps that `global_writes` names
};

// --- inline helpers ---

inline void Warp::synchronize_through_memory(bool acquires, bool releases) {
  Clock& memory = cta->cluster->memory_clock;
  if (acquires) clock.join(memory);
  if (releases) {
    memory.join(clock);
    ++clock.at[place];
  }
}

inline void Warp::add_pending(const PendingRegisters& p) {
  size_t slot = p.offset / 64;
  if (pending_index.size() <= slot) pending_index.resize(slot + 1);
  if (uint16_t at = pending_index[slot]) {
    pending_registers[at - 1] = p;
    return;
  }
  pending_registers.push_back(p);
  pending_index[slot] = static_cast<uint16_t>(pending_registers.size());
}

template <class F>
void Warp::erase_pending(F done) {
  for (const PendingRegisters& p : pending_registers) pending_index[p.offset / 64] = 0;
  std::erase_if(pending_registers, done);
  for (size_t i = 0; i < pending_registers.size(); ++i)
    pending_index[pending_registers[i].offset / 64] = static_cast<uint16_t>(i + 1);
}

template <class T>
T* Warp::reg(const Operand& op) {
  return reinterpret_cast<T*>(registers.get() + op.offset);
}

}  // namespace gemmtune::emulator
