#include "search/stopping.h"

#include <algorithm>

#include "search/statistics.h"

namespace gemmtune {
namespace {

SampleList counting(const SampleList& samples, bool final_rounds) {
  SampleList list;
  for (const Sample& sample : samples)
    if (sample.final_round == final_rounds && sample.mark == SampleMark::none) list.push_back(sample);
  return list;
}

double screening_median(const SampleList& samples) { return median_us(counting(samples, false)); }

size_t screened(const SampleList& samples) { return counting(samples, false).size(); }

/// Smallest median of those that were looked at; 0 if none was.
double best_median(std::span<const SampleList> candidates) {
  double best = 0;
  for (const SampleList& samples : candidates) {
    if (screened(samples) < kFirstLookRounds) continue;
    double median = screening_median(samples);
    if (best == 0 || median < best) best = median;
  }
  return best;
}

/// Whether a candidate needs another round beside the best.
bool wants_round(const SampleList& samples, const SampleList& best, size_t at_least, size_t at_most) {
  size_t rounds = shared_rounds(samples, best);
  if (rounds < at_least) return true;
  return rounds < at_most && standing(time_ratio(samples, best)) == Standing::undecided;
}

}  // namespace

std::vector<size_t> to_screen(std::span<const SampleList> candidates) {
  std::vector<size_t> wanting;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (screened(candidates[i]) < kFirstLookRounds) wanting.push_back(i);
  if (!wanting.empty()) return wanting;
  double best = best_median(candidates);
  for (size_t i = 0; i < candidates.size(); ++i)
    if (screened(candidates[i]) < kScreenRounds && screening_median(candidates[i]) <= kClearlySlower * best)
      wanting.push_back(i);
  return wanting;
}

std::vector<size_t> finalists(std::span<const SampleList> candidates) {
  double best = best_median(candidates);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (screened(candidates[i]) > 0 && screening_median(candidates[i]) <= kFinalistMargin * best)
      chosen.push_back(i);
  std::ranges::sort(chosen, {}, [&](size_t i) { return screening_median(candidates[i]); });
  if (chosen.size() > kMaxFinalists) chosen.resize(kMaxFinalists);
  return chosen;
}

std::vector<size_t> to_finish(std::span<const SampleList> candidates) {
  std::vector<size_t> all = finalists(candidates);
  if (all.empty()) return {};
  std::vector<SampleList> finals;
  for (size_t i : all) finals.push_back(counting(candidates[i], true));
  if (std::ranges::any_of(finals, &SampleList::empty)) return all;
  size_t best = static_cast<size_t>(
      std::ranges::min_element(finals, {}, [](const SampleList& l) { return median_us(l); }) -
      finals.begin());
  std::vector<size_t> wanting;
  for (size_t i = 0; i < all.size(); ++i)
    if (i != best && wants_round(finals[i], finals[best], kFinalRounds, kMaxFinalRounds))
      wanting.push_back(all[i]);
  if (!wanting.empty() || finals[best].size() < kFinalRounds) wanting.push_back(all[best]);
  return wanting;
}

std::vector<size_t> to_measure_sustained(std::span<const SampleList> candidates) {
  std::vector<size_t> chosen = finalists(candidates);
  auto burst_us = [&](size_t i) {
    SampleList finals = counting(candidates[i], true);
    return finals.empty() ? screening_median(candidates[i]) : median_us(finals);
  };
  std::ranges::stable_sort(chosen, {}, burst_us);
  if (chosen.size() > kMaxSustained) chosen.resize(kMaxSustained);
  return chosen;
}

std::vector<size_t> to_sustain(std::span<const SampleList> candidates) {
  if (candidates.empty()) return {};
  std::vector<SampleList> lists;
  for (const SampleList& samples : candidates) lists.push_back(counting(samples, true));
  const SampleList& reference = lists.front();
  if (lists.size() == 1)
    return reference.size() < kSustainedRounds ? std::vector<size_t>{0} : std::vector<size_t>();
  size_t next = 0;
  for (size_t i = 1; i < lists.size(); ++i) {
    if (!wants_round(lists[i], reference, kSustainedRounds, kMaxSustainedRounds)) continue;
    if (next == 0 || shared_rounds(lists[i], reference) < shared_rounds(lists[next], reference)) next = i;
  }
  return next == 0 ? std::vector<size_t>() : std::vector<size_t>{next, 0};
}

bool clock_is_settled(std::span<const int> readings_khz) {
  constexpr size_t kReadings = 5;
  if (readings_khz.size() < kReadings) return false;
  auto [low, high] = std::ranges::minmax(readings_khz.last(kReadings));
  return low > 0 && high - low <= high / 100;
}

}  // namespace gemmtune
