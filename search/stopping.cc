#include "search/stopping.h"

#include <algorithm>

namespace gemmtune {
namespace {

struct Counts {
  size_t screen = 0, final = 0;
};

Counts count(const SampleList& samples) {
  size_t final = static_cast<size_t>(std::ranges::count_if(samples, &Sample::final_round));
  return {samples.size() - final, final};
}

double screening_median(const SampleList& samples) {
  Measurement m;
  for (const Sample& sample : samples)
    if (!sample.final_round) m.samples.push_back(sample);
  return m.median_us();
}

/// Smallest median of those that were looked at; 0 if none was.
double best_median(std::span<const SampleList> candidates) {
  double best = 0;
  for (const SampleList& samples : candidates) {
    if (count(samples).screen < kFirstLookRounds) continue;
    double median = screening_median(samples);
    if (best == 0 || median < best) best = median;
  }
  return best;
}

}  // namespace

std::vector<size_t> to_screen(std::span<const SampleList> candidates) {
  std::vector<size_t> wanting;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (count(candidates[i]).screen < kFirstLookRounds) wanting.push_back(i);
  if (!wanting.empty()) return wanting;
  double best = best_median(candidates);
  for (size_t i = 0; i < candidates.size(); ++i)
    if (count(candidates[i]).screen < kScreenRounds &&
        screening_median(candidates[i]) <= kClearlySlower * best)
      wanting.push_back(i);
  return wanting;
}

std::vector<size_t> to_finish(std::span<const SampleList> candidates) {
  double best = best_median(candidates);
  std::vector<size_t> finalists;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (!candidates[i].empty() && screening_median(candidates[i]) <= kFinalistMargin * best)
      finalists.push_back(i);
  std::ranges::sort(finalists, {}, [&](size_t i) { return screening_median(candidates[i]); });
  if (finalists.size() > kMaxFinalists) finalists.resize(kMaxFinalists);
  std::erase_if(finalists, [&](size_t i) { return count(candidates[i]).final >= kFinalRounds; });
  return finalists;
}

}  // namespace gemmtune
