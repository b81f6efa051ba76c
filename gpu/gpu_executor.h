// The GPU as the search sees it: an Executor that talks to a worker process with deadlines and replaces it
// when it hangs or dies.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "gpu/channel.h"
#include "search/executor.h"

namespace gemmtune {

class GpuExecutor final : public Executor {
 public:
  struct Deadlines {
    std::chrono::milliseconds start{60000}, begin{180000}, prepare{20000};
    /// Beside what the work itself takes at a tenth of the device's rate.
    std::chrono::milliseconds validate{4000}, sample{4000};
  };
  /// Starts the worker for device `index`. Throws EnvironmentError if it cannot be used.
  explicit GpuExecutor(int index);
  GpuExecutor(int index, Deadlines deadlines);

  DeviceRecord device() const override { return device_; }
  StepResult begin_problem(const Problem& problem, float alpha, float beta) override;
  StepResult prepare(int handle, const Variant& variant, const CompiledKernel& kernel) override;
  ValidationResult validate(int handle) override;
  SampleResult sample(int handle, Regime regime, bool warm_l2 = false) override;
  GraphResult sample_graph(int handle, bool warm_l2) override;
  /// cuBLASLt, in the worker.
  LibraryResult prepare_library(int first_handle, int at_most) override;

  /// One request that does nothing: what talking to the worker costs. Throws EnvironmentError.
  std::chrono::duration<double, std::micro> round_trip();

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
  /// Sends and waits. A worker that does not answer in time or dies is replaced; the result then says
  /// timed_out or crashed. `reply` is filled when the worker answered.
  StepResult call(const nlohmann::json& request, std::chrono::milliseconds deadline, nlohmann::json& reply);
  std::chrono::milliseconds slow_launches(int count) const;
  StepResult send_begin();
  StepResult send_prepare(int handle);
  StepResult send_library(nlohmann::json& reply);
  bool is_library(int handle) const { return library_ && handle >= library_->first_handle; }
  /// After a replacement the new worker knows nothing: tells it again what this step needs.
  StepResult ensure(int handle);

  int index_;
  Deadlines deadlines_;
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
