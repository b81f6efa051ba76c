#include "search/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace gemmtune {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014). std:: distributions differ between standard libraries; this does
/// not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// Below `bound`; its bias of bound / 2^64 is nothing for sample counts.
  size_t below(size_t bound) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<size_t>((z ^ (z >> 31)) % bound);
  }

 private:
  uint64_t state_;
};

double median_in_place(std::vector<double>& values) {
  size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle)) + upper) /
         2;
}

double resampled_median(std::span<const double> from, Random& random, std::vector<double>& scratch) {
  scratch.clear();
  for (size_t i = 0; i < from.size(); ++i) scratch.push_back(from[random.below(from.size())]);
  return median_in_place(scratch);
}

/// How many values to leave out at each end: the largest k with 2 * P(Binomial(n, 1/2) < k) <= 5 %.
size_t left_out(size_t n) {
  double probability = std::pow(0.5, double(n)), below = 0;
  size_t k = 0;
  for (;; ++k) {
    below += probability;  // P(X <= k)
    if (2 * below > 0.05) return k;
    probability *= double(n - k) / double(k + 1);
  }
}

std::vector<double> times(std::span<const Sample> samples) {
  std::vector<double> all;
  for (const Sample& sample : samples) all.push_back(sample.time_us);
  return all;
}

std::vector<double> ratios_by_round(std::span<const Sample> numerator, std::span<const Sample> denominator) {
  std::map<int, double> below;
  for (const Sample& sample : denominator) below[sample.round] = sample.time_us;
  std::map<int, double> ratios;
  for (const Sample& sample : numerator)
    if (auto found = below.find(sample.round); found != below.end())
      ratios[sample.round] = sample.time_us / found->second;
  std::vector<double> values;
  for (const auto& [round, ratio] : ratios) values.push_back(ratio);
  return values;
}

}  // namespace

double median(std::vector<double> values) { return median_in_place(values); }

double median_us(std::span<const Sample> samples) { return median(times(samples)); }

Interval median_interval(std::vector<double> values) {
  std::ranges::sort(values);
  // left_out(n) = 0 means that not even the extremes reach 95 %.
  size_t k = std::max<size_t>(1, left_out(values.size()));
  return {values[k - 1], values[values.size() - k]};
}

Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator, int resamples,
                        uint64_t seed) {
  if (numerator.empty() || denominator.empty() || resamples < 1)
    throw std::invalid_argument("ratio_interval needs samples on both sides");
  Random random(seed);
  std::vector<double> ratios, scratch;
  for (int i = 0; i < resamples; ++i) {
    double above = resampled_median(numerator, random, scratch);
    ratios.push_back(above / resampled_median(denominator, random, scratch));
  }
  std::ranges::sort(ratios);
  auto at = [&](double q) { return ratios[static_cast<size_t>(std::lround(q * double(ratios.size() - 1)))]; };
  return {at(0.025), at(0.975)};
}

size_t shared_rounds(std::span<const Sample> a, std::span<const Sample> b) {
  return ratios_by_round(a, b).size();
}

TimeRatio time_ratio(std::span<const Sample> numerator, std::span<const Sample> denominator) {
  constexpr int kResamples = 2000;
  constexpr uint64_t kSeed = 1;
  std::vector<double> ratios = ratios_by_round(numerator, denominator);
  if (ratios.size() >= kPairsForInterval) return {median(ratios), median_interval(ratios), ratios.size()};
  std::vector<double> above = times(numerator), below = times(denominator);
  Interval interval = ratio_interval(above, below, kResamples, kSeed);
  return {median(above) / median(below), interval, 0};
}

Standing standing(const TimeRatio& r) {
  if (r.interval.high < kWorthwhile) return Standing::tied;
  return r.interval.low > kWorthwhile ? Standing::slower : Standing::undecided;
}

}  // namespace gemmtune
