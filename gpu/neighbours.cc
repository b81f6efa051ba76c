#include "gpu/neighbours.h"

#include <algorithm>

namespace gemmtune {

Neighbours::Neighbours(const std::vector<unsigned>& before, const std::vector<unsigned>& after,
                       unsigned own_pid)
    : own_{own_pid} {
  for (unsigned pid : after)
    if (std::ranges::find(before, pid) == before.end()) own_.insert(pid);
  for (unsigned pid : before) first_seen_[pid] = Time::min();
}

bool Neighbours::computing(Time now, const std::vector<unsigned>& running,
                           const std::optional<std::vector<unsigned>>& busy) {
  bool found = false;
  for (unsigned pid : running) {
    if (own_.contains(pid)) continue;
    Time since = first_seen_.emplace(pid, now).first->second;
    bool is_new = since != Time::min() && now - since < kMemory;
    found = found || is_new || !busy || std::ranges::find(*busy, pid) != busy->end();
  }
  return found;
}

}  // namespace gemmtune
