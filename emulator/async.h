// Asynchronous operations: they are issued by an instruction and run when the schedule says so.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "emulator/clock.h"
#include "emulator/schedule.h"

namespace gemmtune::emulator {

struct Cta;

/// Operations that complete in the order of issue: tcgen05 work of one thread, wgmma of a warp.
struct InOrder {
  uint64_t issued = 0, completed = 0, observed = 0;
  std::deque<std::pair<uint64_t, uint64_t>> marks;  ///< (observed, tick) as it grew, the newest few
  /// Who was told, by what, that everything up to a number is complete: the newest few. What has been dropped
  /// counts as known to everybody.
  std::deque<std::pair<uint64_t, Moment>> told;
  uint64_t told_dropped = 0;
  void tell(uint64_t sequence, Moment moment) {
    told.emplace_back(sequence, moment);
    if (told.size() <= 256) return;
    told_dropped = std::max(told_dropped, told.front().first);
    told.pop_front();
  }
  /// When everything up to `sequence` was first known to be complete; 0 if that is long ago.
  uint64_t observed_tick(uint64_t sequence) const {
    for (auto [observed_up_to, tick] : marks)
      if (observed_up_to >= sequence) return marks.front().first >= sequence && marks.size() > 32 ? 0 : tick;
    return 0;
  }
  void observe(uint64_t sequence, uint64_t tick) {
    if (observed >= sequence) return;
    observed = sequence;
    marks.emplace_back(sequence, tick);
    if (marks.size() > 64) marks.pop_front();
  }
};

/// One operation that touches memory, for the race checks and the diagnoses.
struct OperationRecord {
  const char* what = "";
  int line = 0;
  int warp = 0;
  uint32_t rank = 0;
  bool done = false;      ///< has run
  bool observed = false;  ///< somebody waited for its completion (operations without a queue)
  InOrder* queue = nullptr;
  uint64_t sequence = 0;
  std::vector<Moment> told;  ///< what stands for its completion (operations without a queue)
  /// By the rules of the memory model, not just in fact. Of a queue: how much of it, 0 if less than this.
  uint64_t known_up_to(const Clock& clock) const {
    if (queue->told_dropped >= sequence) return queue->told_dropped;
    for (auto it = queue->told.rbegin(); it != queue->told.rend();
         ++it)  // the newest that is known tells most
      if (it->first >= sequence && it->second.known_to(clock)) return it->first;
    return 0;
  }
  bool is_known_to(const Clock& clock) const {
    if (queue && known_up_to(clock)) return true;
    for (const Moment& moment : told)
      if (moment.known_to(clock)) return true;
    return false;
  }
  bool is_observed() const { return observed || (queue && queue->observed >= sequence); }
};

class AsyncEngine {
 public:
  struct Task {
    std::function<void()> run;
    const Cta* cta = nullptr;
    int warp = 0, line = 0;
    uint64_t order = 0;
  };

  AsyncEngine() { operations_.emplace_back(); }

  /// A new record; ids start at 1.
  uint32_t add_operation(const char* what, int line, uint32_t rank, int warp, InOrder* queue);
  OperationRecord& operation(uint32_t id) { return operations_[id]; }
  const OperationRecord& operation(uint32_t id) const { return operations_[id]; }

  /// `queue` nullptr: in no order with anything.
  void submit(const void* queue, Task task);
  bool pending() const { return pending_ > 0; }
  size_t pending_count() const { return pending_; }
  /// Runs one task: the oldest, or a random queue's first. False if there is none.
  bool run_oldest();
  bool run_random(std::mt19937_64& random);
  /// Everything of one queue.
  void drain(const void* queue);
  const Task* running() const { return running_; }

 private:
  struct Queue {
    const void* key;
    std::deque<Task> tasks;
  };
  void run_front(size_t index);

  std::deque<OperationRecord> operations_;
  std::vector<Queue> queues_;
  size_t pending_ = 0;
  uint64_t next_order_ = 1;
  Task running_task_;
  const Task* running_ = nullptr;
};

}  // namespace gemmtune::emulator
