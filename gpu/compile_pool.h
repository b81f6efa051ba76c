// NVRTC in worker processes: a source that crashes or hangs the compiler costs one request.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "gpu/channel.h"
#include "search/compiler.h"

namespace gemmtune {

class CompilePool final : public Compiler {
 public:
  struct Limits {
    std::chrono::milliseconds deadline{120000};  ///< for one compilation
    int recycle_after = 200;  ///< compilations of one worker: NVRTC's memory grows over hundreds (jitify#92)
    /// Address space of a worker: a compilation that needs more is a runaway, not a kernel.
    int64_t memory_bytes = int64_t{8} << 30;
  };
  /// `jobs` workers. Throws EnvironmentError if NVRTC is missing.
  explicit CompilePool(int jobs);
  CompilePool(int jobs, Limits limits);

  Toolchain toolchain() const override { return toolchain_; }
  void submit(CompileRequest request) override;
  CompileResult take(const std::string& key) override;
  bool poll(std::chrono::milliseconds patience) override;
  /// Of the workers that live now, for tests of what they cost.
  std::vector<int> worker_pids() const;

 private:
  struct Worker {
    std::unique_ptr<WorkerProcess> process;
    std::string key;  ///< request in progress, or empty
    std::chrono::steady_clock::time_point started;
    int done = 0;
  };
  void start_waiting();
  void finish(Worker& worker, CompileResult result);
  CompileResult failed(const Worker& worker, std::string why) const;

  Limits limits_;
  Toolchain toolchain_;
  std::vector<Worker> workers_;
  std::deque<CompileRequest> waiting_;
  std::map<std::string, CompileResult> finished_;
};

/// The compile worker's main loop: requests in, results out, until the channel closes.
int run_compile_worker(Channel channel, int64_t memory_bytes);

}  // namespace gemmtune
