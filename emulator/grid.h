// The clusters of one launch and the loop over them. Two grids of a stream can run by turns (launch_stream).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "emulator/state.h"

namespace gemmtune::emulator {

class Grid {
 public:
  Grid(Module& module, const LaunchConfig& config, GlobalMemory* memory);
  Grid(const Grid&) = delete;
  /// Why it cannot be launched; empty if it can.
  const std::string& refused() const { return refused_; }
  /// To the end, on as many host threads as are allowed and make sense.
  void run();
  /// Every active cluster gets one turn on this thread. False once all have ended.
  bool take_turn();
  /// Nothing can go on before the grid ahead in the stream has ended.
  bool blocked() const { return blocked_; }
  Launch& launch() { return launch_; }
  /// Another grid runs beside this one: turns are short, and all that fits is resident from the start.
  void share_device() { shares_device_ = true; }
  LaunchResult result();

 private:
  void retire(uint64_t slot, std::unique_ptr<Cluster> c);
  void run_apart(unsigned threads);
  std::unique_ptr<Cluster> next_cluster(uint64_t slot);

  const Program* program_;
  Launch launch_;
  std::string refused_;
  uint64_t slots_ = 0;
  std::atomic<bool> abort_{false};
  /// Finished clusters by slot, so that the result does not depend on the host's threads.
  std::vector<std::vector<std::unique_ptr<Cluster>>> done_;
  std::vector<std::pair<uint64_t, std::unique_ptr<Cluster>>> active_;
  uint64_t started_ = 0;
  bool blocked_ = false, shares_device_ = false;
  std::mutex print_mutex_;
  std::string printed_;
};

}  // namespace gemmtune::emulator
