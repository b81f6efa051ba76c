// The sweep's journal, kept in the database.
#pragma once

#include "db/store.h"
#include "db/winners.h"
#include "search/sweep.h"

namespace gemmtune {

/// Knobs of a stored config that differ from their defaults: what the tie-break calls simple.
int knobs_away_from_default(std::string_view family, std::string_view config);

class DbJournal final : public Journal {
 public:
  DbJournal(Store& store, const DeviceRecord& device, int64_t sweep_id)
      : store_(store), device_id_(store.device_id(device)), sweep_id_(sweep_id) {}

  bool has_kernel(const std::string& key, bool with_ptx) override { return store_.has_kernel(key, with_ptx); }
  std::optional<CompiledKernel> find_kernel(const std::string& key) override {
    return store_.find_kernel(key);
  }
  void put_kernel(const CompiledKernel& kernel) override { store_.put_kernel(kernel); }
  std::vector<Known> known_trials(const Problem& problem, const Timing& timing) override;
  std::optional<Incumbent> incumbent(const Problem& problem, const Timing& timing) override;
  int64_t record(const Trial& trial) override { return store_.record_trial(trial, device_id_, sweep_id_).id; }
  void append_sample(int64_t trial_id, const Sample& sample) override {
    store_.append_samples(trial_id, {&sample, 1});
  }
  void put_launch_cost(int64_t trial_id, const LaunchCost& cost) override {
    store_.put_launch_cost(trial_id, cost);
  }
  void fail(int64_t trial_id, Outcome outcome, const std::string& message) override;
  std::optional<double> settle(const Problem& problem, const Timing& timing) override;

 private:
  Store& store_;
  int64_t device_id_, sweep_id_;
};

}  // namespace gemmtune
