// What a launch did, as a timeline to read and as a file for a trace viewer.
#pragma once

#include <string>
#include <vector>

#include "emulator/emulator.h"

namespace gemmtune::emulator {

/// Collects the events of one launch. Times are instructions executed by the cluster: they show order, not
/// duration.
class Trace {
 public:
  /// For LaunchConfig::trace; must not outlive this object.
  std::function<void(const TraceEvent&)> recorder();
  bool empty() const { return events_.empty(); }

  /// One line an event: when it was issued and done, by whom (CTA, warp, PTX line), what. At most
  /// `max_lines` lines; the last one says how many are missing.
  std::string timeline(size_t max_lines = SIZE_MAX) const;
  /// Chrome's trace event format (chrome://tracing, Perfetto): a process a CTA, a thread a warp; waits as
  /// slices, asynchronous operations as async slices, mbarrier phases as instants.
  std::string chrome_json() const;

 private:
  std::vector<TraceEvent> events_;
};

}  // namespace gemmtune::emulator
