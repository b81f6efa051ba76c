// When enough has been measured: pure functions of the samples, so that an interrupted sweep continues where
// it was.
#pragma once

#include <span>
#include <vector>

#include "search/trial.h"

namespace gemmtune {

/// Protocol p1, burst. Screening: every candidate is timed once a round; one that is beyond doubt slower
/// leaves after the first look. Then the finalists are timed afresh, together.
inline constexpr size_t kFirstLookRounds = 3;
inline constexpr size_t kScreenRounds = 10;
inline constexpr double kClearlySlower = 1.10;
inline constexpr size_t kFinalRounds = 12;
inline constexpr double kFinalistMargin = 1.04;
inline constexpr size_t kMaxFinalists = 8;

/// Samples of one candidate, screening and final.
using SampleList = std::vector<Sample>;

/// Candidates that need a screening sample now. Empty: screening is finished. Lists may have any length, as a
/// resumed sweep finds them.
std::vector<size_t> to_screen(std::span<const SampleList> candidates);

/// Candidates that need a final sample now; call it once to_screen() is empty. Empty: measuring is finished.
std::vector<size_t> to_finish(std::span<const SampleList> candidates);

}  // namespace gemmtune
