// Happens-before between the warps of a cluster. Every warp and every mbarrier has a place in a vector clock:
// a warp's place counts what it has released, a barrier's place its completed phases. Barriers carry clocks
// from those that arrive to those that wait, so that a check can ask what a warp is entitled to know, and not
// just what happened to be true under the schedule that was run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gemmtune::emulator {

struct Clock {
  std::vector<uint32_t> at;
  uint32_t of(uint32_t place) const { return place < at.size() ? at[place] : 0; }
  void raise(uint32_t place, uint32_t event) {
    if (at.size() <= place) at.resize(place + 1);
    at[place] = std::max(at[place], event);
  }
  void join(const Clock& other) {
    if (at.size() < other.at.size()) at.resize(other.at.size());
    for (size_t i = 0; i < other.at.size(); ++i) at[i] = std::max(at[i], other.at[i]);
  }
};

/// Something that a warp did at a moment, or that a phase of a barrier stood for. `event` 0: nothing.
struct Moment {
  uint32_t place = 0, event = 0;
  bool known_to(const Clock& clock) const { return clock.of(place) >= event; }
};

}  // namespace gemmtune::emulator
