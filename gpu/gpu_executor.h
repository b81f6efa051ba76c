// The GPU as the search sees it: an Executor that talks to a worker process with deadlines and replaces it
// when it hangs or dies. After that the GPU has to prove its health (canary.h) before anything else counts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gpu/canary.h"
#include "gpu/channel.h"
#include "gpu/gpu_lock.h"
#include "search/executor.h"

namespace gemmtune {

class GpuExecutor final : public Executor {
 public:
  struct Deadlines {
    std::chrono::milliseconds start{60000}, begin{180000}, prepare{20000};
    /// Beside what the work itself takes at a tenth of the device's rate.
    std::chrono::milliseconds validate{4000}, sample{4000};
    std::chrono::milliseconds canary{20000};
  };
  /// Starts the worker for device `index`. `lock`, if given, is what reserve() takes. Throws EnvironmentError
  /// if the device cannot be used.
  explicit GpuExecutor(int index, std::unique_ptr<GpuLock> lock = nullptr);
  GpuExecutor(int index, Deadlines deadlines, CanaryRule rule = {}, std::unique_ptr<GpuLock> lock = nullptr);

  DeviceRecord device() const override { return device_; }
  std::optional<std::string> reserve() override;
  void release() noexcept override;
  StepResult begin_problem(const Problem& problem, float alpha, float beta) override;
  StepResult prepare(int handle, const Variant& variant, const CompiledKernel& kernel) override;
  ValidationResult validate(int handle) override;
  SampleResult sample(int handle, Regime regime, bool warm_l2 = false) override;
  GraphResult sample_graph(int handle, bool warm_l2) override;
  /// cuBLASLt, in the worker.
  LibraryResult prepare_library(int first_handle, int at_most) override;

  /// One request that does nothing: what talking to the worker costs. Throws EnvironmentError.
  std::chrono::duration<double, std::micro> round_trip();

  /// The canary's readings so far: the first is the run's yardstick, the others followed faults.
  const std::vector<CanaryReading>& canary_readings() const { return readings_; }

 private:
  struct Loaded {
    Variant variant;
    std::string cubin;
    bool in_worker = false;
  };
  struct Library {
    int first_handle, at_most;
    bool in_worker = false;
  };
  void start();
  /// Sends and waits; `reply` is filled when the worker answered.
  Channel::Received exchange(const nlohmann::json& request, std::chrono::milliseconds deadline,
                             nlohmann::json& reply);
  /// As exchange(). A worker that does not answer in time, dies, or has lost its context is killed; the
  /// result then says timed_out or crashed. Its successor starts with the next step, so that the caller can
  /// record this one even if there is none.
  StepResult call(const nlohmann::json& request, std::chrono::milliseconds deadline, nlohmann::json& reply);
  std::chrono::milliseconds slow_launches(int count) const;
  /// A live worker on a GPU that proved its health since the last fault. Throws EnvironmentError.
  void ensure_worker();
  CanaryReading read_canary();
  /// SIGKILL; how the worker ended.
  std::string kill_worker();
  StepResult send_begin();
  StepResult send_prepare(int handle);
  StepResult send_library(nlohmann::json& reply);
  bool is_library(int handle) const { return library_ && handle >= library_->first_handle; }
  /// After a replacement the new worker knows nothing: tells it again what this step needs.
  StepResult ensure(int handle);

  int index_;
  Deadlines deadlines_;
  CanaryRule rule_;
  std::unique_ptr<GpuLock> lock_;
  std::vector<CanaryReading> readings_;
  std::string last_fault_;  ///< since which the canary has not sung; empty: none
  std::string beyond_help_;
  std::unique_ptr<WorkerProcess> worker_;
  std::string support_cubin_;  ///< compiled by the first worker, handed to those that follow
  DeviceRecord device_;
  Problem problem_;
  float alpha_ = 1, beta_ = 0;
  bool problem_in_worker_ = false;
  std::map<int, Loaded> loaded_;
  std::optional<Library> library_;
  /// Proxy results by class and config: a variant passes its proxies once, for every shape.
  std::map<std::string, std::vector<ValidationCase>> proxies_;
};

}  // namespace gemmtune
