#include "emulator/async.h"

#include "emulator/state.h"

namespace gemmtune::emulator {

uint32_t AsyncEngine::add_operation(const char* what, int line, uint32_t rank, int warp, InOrder* queue) {
  OperationRecord& r = operations_.emplace_back();
  r.what = what;
  r.line = line;
  r.rank = rank;
  r.warp = warp;
  r.queue = queue;
  if (queue) r.sequence = ++queue->issued;
  return static_cast<uint32_t>(operations_.size() - 1);
}

void AsyncEngine::submit(const void* queue, Task task) {
  task.order = next_order_++;
  ++pending_;
  if (queue)
    for (Queue& q : queues_)
      if (q.key == queue) {
        q.tasks.push_back(std::move(task));
        return;
      }
  Queue& fresh = queues_.emplace_back();
  fresh.key = queue;
  fresh.tasks.push_back(std::move(task));
}

void AsyncEngine::run_front(size_t index) {
  running_task_ = std::move(queues_[index].tasks.front());
  queues_[index].tasks.pop_front();
  if (queues_[index].tasks.empty()) queues_.erase(queues_.begin() + static_cast<ptrdiff_t>(index));
  --pending_;
  running_ = &running_task_;  // still set when run() throws: the diagnosis needs its line
  running_task_.run();
  running_ = nullptr;
}

bool AsyncEngine::run_oldest() {
  if (queues_.empty()) return false;
  size_t best = 0;
  for (size_t i = 1; i < queues_.size(); ++i)
    if (queues_[i].tasks.front().order < queues_[best].tasks.front().order) best = i;
  run_front(best);
  return true;
}

void AsyncEngine::drain(const void* queue) {
  for (size_t i = 0; i < queues_.size();) {
    if (queues_[i].key == queue) {
      run_front(i);
      i = 0;
    } else {
      ++i;
    }
  }
}

bool AsyncEngine::run_random(std::mt19937_64& random) {
  if (queues_.empty()) return false;
  run_front(random() % queues_.size());
  return true;
}

}  // namespace gemmtune::emulator
