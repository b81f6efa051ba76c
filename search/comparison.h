// Variants beside the vendor library's algorithms, and beside each other: same operands, one run,
// interleaved.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "search/executor.h"
#include "search/statistics.h"

namespace gemmtune {

struct CompareOptions {
  Regime regime = Regime::burst;
  bool warm_l2 = false;
  uint64_t seed = 1;
  int rounds = 20;      ///< each takes one sample of everyone
  int algorithms = 32;  ///< that the library is asked for; 0: without the library
  float alpha = 1, beta = 0;
  std::chrono::milliseconds repeat_pause{500};
  /// What goes on now, for a display: called between steps.
  std::function<void(const std::string&)> now = [](const std::string&) {};
};

/// One of ours.
struct Entrant {
  std::string who;  ///< "winner"
  Variant variant;
  CompiledKernel kernel;
};

/// One row of the answer.
struct Compared {
  std::string who;   ///< as its Entrant, or "cuBLASLt 13.1.0 first", "... best"
  std::string what;  ///< knobs off their default, or the library's ids
  StepResult
      outcome;  ///< not ok: it was not timed to the end. A library's wrong result is timed all the same
  Validation validation;
  std::vector<Sample> samples;  ///< that count
  double median_us = 0;         ///< 0: not timed
  double relative_spread = 0;
  TimeRatio ratio;                        ///< its time / that of the first row that was timed
  std::optional<LaunchCost> launch_cost;  ///< of rows so short that launching may be what takes the time
};

struct Comparison {
  std::vector<Compared> rows;   ///< ours in the order given, then the library's first choice and its best
  int algorithms = 0;           ///< that the library offered
  int wrong_algorithms = 0;     ///< of these, those that failed validation; they cannot be its best
  std::string library_problem;  ///< why there are no rows of the library, where some were wanted
  std::string problem;          ///< why nothing could be measured
  int marked = 0;               ///< samples that did not count and were repeated
};

/// The library's algorithms are screened first, in bursts; its first choice and the fastest few go on. "Best"
/// is the fastest of those in the final rounds, which flatters the library a little.
Comparison compare(Executor& executor, const Problem& problem, const std::vector<Entrant>& entrants,
                   const CompareOptions& options);

}  // namespace gemmtune
