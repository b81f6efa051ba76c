// Who else computes on the GPU. A process that merely has a context there takes nothing from us; one whose
// kernels run makes a sample worthless.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gemmtune {

class Neighbours {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Process ids with a context, before and after we made ours: what came between is us, under whatever id
  /// the driver knows us (in a container it is not getpid()).
  Neighbours(const std::vector<unsigned>& before, const std::vector<unsigned>& after, unsigned own_pid);

  /// Whether another process computes now. `running`: those with a context. `busy`: those that ran kernels
  /// within the last kMemory; absent where the driver does not say, and then a context is suspicion enough.
  /// So it is of a process that came within kMemory: utilization lags behind.
  bool computing(Time now, const std::vector<unsigned>& running,
                 const std::optional<std::vector<unsigned>>& busy);

  static constexpr std::chrono::seconds kMemory{3};

 private:
  std::set<unsigned> own_;
  std::map<unsigned, Time> first_seen_;
};

}  // namespace gemmtune
