#include "search/covering.h"

#include <algorithm>
#include <unordered_set>

namespace gemmtune {
namespace {

constexpr int kCandidates = 40;  ///< drawn for each row; the one that covers most is taken
constexpr int kFruitless = 3;    ///< rounds of draws that cover nothing new, before combinations are aimed at

/// A combination: up to four (factor, value) pairs in one word.
using Tuple = uint64_t;

class Covering {
 public:
  Covering(const SpaceOf& space_of, const std::vector<ExtraFactor>& extra, int strength, uint64_t seed)
      : space_of_(space_of), extra_(extra), strength_(strength), random_(seed) {
    const Space& any = space_of(std::vector<int>(extra.size(), 0));
    for (const std::vector<int>& values : any.values()) values_.push_back(values);
    knobs_ = values_.size();
    for (const ExtraFactor& factor : extra) {
      values_.emplace_back();
      for (int i = 0; i < factor.count; ++i) values_.back().push_back(i);
    }
    std::vector<size_t> factors;
    choose_factors(0, factors);
  }

  CoveringSample run() {
    for (int fruitless = 0; fruitless < kFruitless && !uncovered_.empty();) {
      std::vector<int> best;
      size_t most = 0;
      for (int i = 0; i < kCandidates; ++i) {
        std::optional<std::vector<int>> row = draw({});
        if (!row) continue;
        size_t gain = 0;
        for_tuples(*row, [&](Tuple tuple) { gain += uncovered_.contains(tuple); });
        if (gain > most) most = gain, best = std::move(*row);
      }
      if (most == 0) {
        ++fruitless;
        continue;
      }
      take(best);
    }
    // What chance does not reach: one by one, and what no legal configuration has is dropped.
    std::vector<Tuple> rest(uncovered_.begin(), uncovered_.end());
    std::ranges::sort(rest);
    for (Tuple tuple : rest) {
      if (!uncovered_.contains(tuple)) continue;
      std::vector<std::pair<size_t, int>> wanted = parts(tuple);
      if (std::optional<std::vector<int>> row = draw(wanted)) {
        take(*row);
      } else {
        uncovered_.erase(tuple);
        ++sample_.impossible;
      }
    }
    sample_.combinations = total_ - sample_.impossible;
    return std::move(sample_);
  }

 private:
  /// Adds every combination of values of every `strength_` factors to the uncovered ones.
  void choose_factors(size_t from, std::vector<size_t>& factors) {
    if (static_cast<int>(factors.size()) == strength_) {
      choose_values(factors, 0, 0);
      return;
    }
    for (size_t i = from; i < values_.size(); ++i) {
      factors.push_back(i);
      choose_factors(i + 1, factors);
      factors.pop_back();
    }
  }
  void choose_values(const std::vector<size_t>& factors, size_t at, Tuple tuple) {
    if (at == factors.size()) {
      uncovered_.insert(tuple);
      ++total_;
      return;
    }
    for (size_t v = 0; v < values_[factors[at]].size(); ++v)
      choose_values(factors, at + 1, tuple << 16 | (factors[at] + 1) << 8 | v);
  }
  /// (factor, index of its value).
  static std::vector<std::pair<size_t, int>> parts(Tuple tuple) {
    std::vector<std::pair<size_t, int>> result;
    for (; tuple != 0; tuple >>= 16)
      result.emplace_back((tuple >> 8 & 0xff) - 1, static_cast<int>(tuple & 0xff));
    return result;
  }

  template <class Visit>
  void for_tuples(const std::vector<int>& row, const Visit& visit) const {
    std::vector<size_t> factors;
    for_tuples(row, 0, 0, 0, visit);
  }
  template <class Visit>
  void for_tuples(const std::vector<int>& row, size_t from, int taken, Tuple tuple,
                  const Visit& visit) const {
    if (taken == strength_) return visit(tuple);
    for (size_t i = from; i < row.size(); ++i)
      for_tuples(row, i + 1, taken + 1, tuple << 16 | (i + 1) << 8 | static_cast<Tuple>(row[i]), visit);
  }

  /// A legal row (indices of values) with the wanted values, at random; nullopt if there is none.
  std::optional<std::vector<int>> draw(const std::vector<std::pair<size_t, int>>& wanted) {
    // Extra factors that are wanted are fixed; the others may decide whether the rest is legal.
    for (int attempt = 0; attempt < 16; ++attempt) {
      std::vector<int> extra;
      for (size_t i = 0; i < extra_.size(); ++i)
        extra.push_back(static_cast<int>(random_() % static_cast<uint64_t>(extra_[i].count)));
      for (auto [factor, value] : wanted)
        if (factor >= knobs_) extra[factor - knobs_] = value;
      Space narrowed = space_of_(extra);
      bool fixed = false;
      for (auto [factor, value] : wanted)
        if (factor < knobs_) {
          fixed = true;
          narrowed.fix(factor, values_[factor][static_cast<size_t>(value)]);
        }
      std::optional<Config> config = narrowed.sample(random_, 2000);
      // Draws miss a small legal rest; a walk does not.
      if (!config && fixed)
        narrowed.for_each([&](const Config& first) {
          config = first;
          return false;
        });
      if (!config) continue;
      std::vector<int> row;
      for (size_t i = 0; i < knobs_; ++i)
        row.push_back(
            static_cast<int>(std::ranges::find(values_[i], config->values[i]) - values_[i].begin()));
      row.insert(row.end(), extra.begin(), extra.end());
      return row;
    }
    return std::nullopt;
  }

  void take(const std::vector<int>& row) {
    for_tuples(row, [&](Tuple tuple) { uncovered_.erase(tuple); });
    CoveringRow taken;
    for (size_t i = 0; i < row.size(); ++i)
      if (i < knobs_) {
        taken.config.values.push_back(values_[i][static_cast<size_t>(row[i])]);
      } else {
        taken.extra.push_back(row[i]);
      }
    sample_.rows.push_back(std::move(taken));
  }

  const SpaceOf& space_of_;
  const std::vector<ExtraFactor>& extra_;
  int strength_;
  std::mt19937_64 random_;
  size_t knobs_ = 0;
  std::vector<std::vector<int>> values_;
  std::unordered_set<Tuple> uncovered_;
  int64_t total_ = 0;
  CoveringSample sample_;
};

}  // namespace

CoveringSample covering_sample(const SpaceOf& space_of, const std::vector<ExtraFactor>& extra, int strength,
                               uint64_t seed) {
  return Covering(space_of, extra, strength, seed).run();
}

}  // namespace gemmtune
