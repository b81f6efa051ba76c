// Writes and reads the records of search/trial.h: devices, sweeps, compiled kernels, trials with their
// samples, winners. Every write is one transaction: what was acknowledged survives kill -9.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/schema.h"
#include "search/trial.h"

namespace gemmtune {

/// What was run, apart from problem and device.
struct VariantKey {
  std::string arch, family, config, kernel_key;  ///< kernel_key: empty if nothing was compiled
  auto operator<=>(const VariantKey&) const = default;
};

struct StoredTrial {
  int64_t id = 0;
  Trial trial;
  int64_t device_id = 0;
  int64_t sweep_id = 0;  ///< 0 = none
  std::string created_at;
  std::optional<LaunchCost> launch_cost;  ///< absent: not looked at
};

/// Of a row's columns graph_us and, behind it, launch_bound.
std::optional<LaunchCost> launch_cost(const Statement& row, int column);

/// Absent fields match everything.
struct TrialFilter {
  std::optional<Problem> problem = {};
  std::optional<std::string> arch = {};
  std::optional<int64_t> device_id = {};
  std::optional<Timing> timing = {};  ///< those timed this way
  std::optional<Outcome> outcome = {};
  std::optional<int64_t> sweep_id = {};
};

class Store {
 public:
  explicit Store(const std::string& path, OpenMode mode = OpenMode::read_write_create)
      : connection_(open_database(path, mode)) {}
  Connection& connection() { return connection_; }

  // Rows that others refer to: found or added.
  int64_t device_id(const DeviceRecord& device);
  int64_t toolchain_id(const Toolchain& toolchain);
  int64_t problem_id(const Problem& problem);
  std::optional<int64_t> find_problem(const Problem& problem);
  DeviceRecord device(int64_t id);
  /// Ids, in order of first use.
  std::vector<int64_t> device_ids();

  int64_t start_sweep(std::string_view command_line, uint64_t seed, std::string_view tool_version);
  void finish_sweep(int64_t sweep_id);

  /// The cubin cache. A cubin that was pruned, or whose bytes do not match their hash, is a miss.
  std::optional<CompiledKernel> find_kernel(std::string_view key);
  /// Whether the cache has a kernel's cubin (and its PTX), or knows that it does not compile. Reads no blob,
  /// so find_kernel() can still miss: damaged bytes.
  bool has_kernel(std::string_view key, bool with_ptx);
  /// Replaces a row with the same key: a failure may have been the machine's (memory, time limit).
  void put_kernel(const CompiledKernel& kernel);

  struct Recorded {
    int64_t id = 0;
    bool inserted = false;  ///< false: this trial was there already (its row is unchanged)
  };
  /// The kernel must be stored first. Throws std::invalid_argument for records that contradict themselves:
  /// `ok` without passed validation, times that are not positive and finite, an unknown kernel.
  Recorded record_trial(const Trial& trial, int64_t device_id, int64_t sweep_id = 0);

  /// For resuming: the variants that need no further trial. With `timing`: those timed this way, and those
  /// that failed before timing. Without (static or emulator work): those with any trial.
  std::set<VariantKey> finished_trials(const Problem& problem, int64_t device_id,
                                       const std::optional<Timing>& timing);
  bool has_trial(const Problem& problem, int64_t device_id, const std::optional<Timing>& timing,
                 const VariantKey& variant);

  std::vector<StoredTrial> trials(const TrialFilter& filter);
  std::optional<StoredTrial> trial(int64_t id);

  /// Fresh samples, behind those it has; recomputes the median and marks the winner as due.
  void append_samples(int64_t trial_id, std::span<const Sample> samples);
  /// A later validation (gemmtune verify). Anything but a passed `ok` dethrones the trial.
  void update_validation(int64_t trial_id, Outcome outcome, const std::string& message,
                         const Validation& validation);

  void put_launch_cost(int64_t trial_id, const LaunchCost& cost);

  /// Replaces the winner of its problem, device and timing, and settles that it was due.
  void put_winner(const Winner& winner, int64_t device_id);
  /// Replaces the evidence line of a stored winner, if it is still this one.
  void set_winner_evidence(const Winner& winner, int64_t device_id, const std::string& evidence);
  void drop_winner(const Problem& problem, int64_t device_id, const Timing& timing);
  std::optional<Winner> winner(const Problem& problem, int64_t device_id, const Timing& timing);
  /// Best first.
  std::vector<Tie> ties(int64_t winner_id);

 private:
  int64_t config_id(std::string_view family, std::string_view config);
  std::optional<int64_t> kernel_id(std::string_view key);
  void insert_samples(int64_t trial_id, std::span<const Sample> samples, int first_index);
  void update_median(int64_t trial_id, const Measurement& measurement);
  std::vector<Sample> samples(int64_t trial_id);
  StoredTrial read_trial(Statement& row);

  Connection connection_;
};

}  // namespace gemmtune
