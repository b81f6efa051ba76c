// `gemmtune best`: per problem and device the stored winner, its runners-up and what became of all trials.
// Answers from indexes and kept counts, never by scanning trials.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"

namespace gemmtune {

/// Absent or empty fields match everything.
struct BestFilter {
  std::vector<Problem> problems = {};  ///< each gets at least one answer, also if it was never tried
  std::optional<ProblemClass> cls = {};
  std::optional<std::string> arch = {};
  std::optional<std::string> device_uuid = {};
  std::optional<std::string> device_name = {};
  Timing timing = {};
  int top = 1;  ///< length of BestAnswer::top
};

/// Where the order of an answer comes from.
enum class Basis { measured, predicted, none };
std::string_view name(Basis basis);

/// A line of the answer. Exactly one basis gave it its place; both times are shown where both exist.
struct RankedTrial {
  int64_t trial_id = 0;
  std::string family, arch, config, kernel_key;
  Outcome outcome = Outcome::ok;
  ValidatedBy validated_by = ValidatedBy::none;
  std::optional<double> median_us, relative_spread;
  std::optional<double> predicted_us;
  std::string model, bound_by;
  bool finalist = false;        ///< its median is of fresh finalist samples, not of screening ones
  std::optional<Interval> tie;  ///< in the tie set: its time / the winner's
  std::optional<LaunchCost> launch_cost;
  std::string created_at;
};

struct BestAnswer {
  Problem problem;
  int64_t device_id = 0;  ///< 0: no trial on any device that matches
  DeviceRecord device;
  Regime regime = Regime::burst;
  bool warm_l2 = false;
  Basis basis = Basis::none;
  std::optional<Winner> winner;  ///< only with basis measured
  bool due = false;              ///< trials came in since: refresh_winners() may change the answer
  std::vector<RankedTrial>
      top;  ///< the winner first, then finalists, then by median; without measurements by predicted time
  std::map<Outcome, int64_t> counts;  ///< of this regime, and those that never reached timing
};

/// By problem, measured answers first.
std::vector<BestAnswer> best(Store& store, const BestFilter& filter);

/// 2 m n k / time, in 10^12 operations per second.
inline double tflops(const Shape& shape, double time_us) { return flop(shape) / time_us / 1e6; }

}  // namespace gemmtune
