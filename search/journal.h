// Where the search keeps what it finds, as an interface.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/compiler.h"
#include "search/trial.h"

namespace gemmtune {

/// Where trials are kept. Every call is durable when it returns.
class Journal {
 public:
  virtual ~Journal() = default;
  /// Cheap; find_kernel() may still find the stored bytes damaged.
  virtual bool has_kernel(const std::string& key, bool with_ptx) = 0;
  virtual std::optional<CompiledKernel> find_kernel(const std::string& key) = 0;
  virtual void put_kernel(const CompiledKernel& kernel) = 0;

  struct Known {
    int64_t id;
    std::string config, kernel_key;
    Outcome outcome;
    std::vector<Sample> samples;
    Validation validation = {};
    bool launch_cost_known = false;
  };
  /// Trials of this problem on this device with this timing that an earlier, perhaps interrupted, sweep left;
  /// and those that failed before timing, which another timing would not change.
  virtual std::vector<Known> known_trials(const Problem& problem, const Timing& timing) = 0;
  /// Family and configuration of the stored winner, so that it meets its challengers.
  struct Incumbent {
    std::string family, config;
  };
  virtual std::optional<Incumbent> incumbent(const Problem& problem, const Timing& timing) = 0;
  virtual int64_t record(const Trial& trial) = 0;
  virtual void append_sample(int64_t trial_id, const Sample& sample) = 0;
  virtual void put_launch_cost(int64_t trial_id, const LaunchCost& cost) = 0;
  /// A trial that was `ok` failed later.
  virtual void fail(int64_t trial_id, Outcome outcome, const std::string& message) = 0;
  /// Chooses and stores the winner of a problem; its median in us, if there is one.
  virtual std::optional<double> settle(const Problem& problem, const Timing& timing) = 0;
};

/// By configuration and kernel.
using KnownTrials = std::map<std::pair<std::string, std::string>, Journal::Known>;
KnownTrials known_trials(Journal& journal, const Problem& problem, const Timing& timing);

}  // namespace gemmtune
