// What a sweep will try, decided before anything runs.
#pragma once

#include <string>
#include <vector>

#include "search/sweep.h"

namespace gemmtune {

struct Candidate {
  Variant variant;
  std::string config_text, key;  ///< of the configuration; of the kernel, as compile_key()
};

struct PlannedProblem {
  ListedShape listed;
  Problem problem;
  std::vector<Candidate> candidates;
};

/// The candidate's trial before anything is known of it.
Trial untried(const Problem& problem, const Candidate& candidate);

struct SweepPlan {
  std::vector<PlannedProblem> problems;
  std::vector<std::string> skipped;  ///< shapes without a legal configuration, with the reason
};

/// For each shape what the strategy proposes and, where times are taken, the stored winners: "no change"
/// needs fresh samples of both.
SweepPlan plan_sweep(const SweepOptions& options, const Toolchain& toolchain, const Executor* executor,
                     Journal& journal);

}  // namespace gemmtune
