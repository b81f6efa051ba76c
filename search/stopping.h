// When enough has been measured: pure functions of the samples, so that an interrupted sweep continues where
// it was. Marked samples never count. Each function names the candidates of the next interleaving round.
#pragma once

#include <span>
#include <vector>

#include "search/trial.h"

namespace gemmtune {

/// Protocol p1, burst. Screening: every candidate is timed once a round; one that is beyond doubt slower
/// leaves after the first look. Then the finalists are timed afresh, together, until each is either surely
/// tied with the best or surely slower, or the budget is spent.
inline constexpr size_t kFirstLookRounds = 3;
inline constexpr size_t kScreenRounds = 10;
inline constexpr double kClearlySlower = 1.10;
inline constexpr size_t kFinalRounds = 12;
inline constexpr size_t kMaxFinalRounds = 30;
inline constexpr double kFinalistMargin = 1.04;
inline constexpr size_t kMaxFinalists = 8;

/// Protocol p1, sustained: 1.4 s a sample, so few candidates and few rounds. Six is the fewest that give a 95
/// % interval (statistics.h).
inline constexpr size_t kSustainedRounds = 6;
inline constexpr size_t kMaxSustainedRounds = 10;
inline constexpr size_t kMaxSustained = 4;

/// How often a marked sample is taken again before it is given up: with the pauses some seconds.
inline constexpr int kMaxRepeats = 8;

/// Samples of one candidate, screening and final.
using SampleList = std::vector<Sample>;

/// Candidates that need a screening sample now. Empty: screening is finished. Lists may have any length, as a
/// resumed sweep finds them.
std::vector<size_t> to_screen(std::span<const SampleList> candidates);

/// Who takes part in the finals, fastest first; call it once to_screen() is empty.
std::vector<size_t> finalists(std::span<const SampleList> candidates);

/// Candidates that need a final sample now, side by side. Empty: measuring is finished.
std::vector<size_t> to_finish(std::span<const SampleList> candidates);

/// Finalists of the burst regime that are measured sustained too, the reference first: call it once
/// to_finish() is empty. The order of the burst need not be that of the power-capped GPU, so more than the
/// winner go on.
std::vector<size_t> to_measure_sustained(std::span<const SampleList> candidates);

/// Sustained samples of those, the reference first: the next pair of blocks, the reference in each. Empty:
/// finished.
std::vector<size_t> to_sustain(std::span<const SampleList> candidates);

/// Whether the SM clock stands still: the last five readings within 1 % (steps are 15 MHz). Readings of 0 are
/// none.
bool clock_is_settled(std::span<const int> readings_khz);

}  // namespace gemmtune
