// What samples say: medians, intervals, ratios. Pure functions; the same samples give the same answer on
// every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/trial.h"

namespace gemmtune {

/// `values` is not empty.
double median(std::vector<double> values);

/// Of samples' times, whatever their marks; there are some.
double median_us(std::span<const Sample> samples);

/// 95 % interval of the median from order statistics (the sign test): assumes nothing of the distribution, so
/// its coverage is exact. Below 6 values no two of them enclose the median so often; then smallest to
/// largest.
Interval median_interval(std::vector<double> values);

/// 95 % percentile-bootstrap interval of median(numerator) / median(denominator), for samples that were not
/// taken side by side. Both must have samples; throws std::invalid_argument.
Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator, int resamples,
                        uint64_t seed);

/// How one candidate's time compares with another's.
struct TimeRatio {
  double median = 0;
  Interval interval;
  size_t rounds = 0;  ///< that both share; 0: not taken side by side, medians are compared instead
};

/// Below this many shared rounds their ratios give no 95 % interval.
inline constexpr size_t kPairsForInterval = 6;

/// Ratios within a round where enough are shared: what drifts (clock, heat, a neighbour) meets both and
/// cancels. Give samples that count (Measurement::counting_samples). Both must have some.
TimeRatio time_ratio(std::span<const Sample> numerator, std::span<const Sample> denominator);

/// Rounds in which both have a sample.
size_t shared_rounds(std::span<const Sample> a, std::span<const Sample> b);

/// Less than this nobody notices: what a rerun, a reboot or another board of the same kind changes.
inline constexpr double kWorthwhile = 1.02;

enum class Standing {
  tied,      ///< surely slower by less than kWorthwhile
  slower,    ///< surely slower by more
  undecided  ///< kWorthwhile lies in the interval
};
Standing standing(const TimeRatio& against_best);

}  // namespace gemmtune
