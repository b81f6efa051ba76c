#include "search/covering.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace gemmtune {
namespace {

constexpr int kCandidates = 24;  ///< drawn for each row; the one that covers most is taken
/// Knob values tried before a draw starts over, at first; twice as many each time. An unlucky early choice
/// costs more than a new start.
constexpr int kPatience = 100;
constexpr int kStarts = 11;

/// A combination: up to four (factor, value) pairs in one word.
using Tuple = uint64_t;
Tuple add_pair(Tuple tuple, size_t factor, size_t value) { return tuple << 16 | (factor + 1) << 8 | value; }

/// A factor and the index of one of its values.
using Wanted = std::vector<std::pair<size_t, size_t>>;
Wanted parts(Tuple tuple) {
  Wanted result;
  for (; tuple != 0; tuple >>= 16) result.emplace_back((tuple >> 8 & 0xff) - 1, tuple & 0xff);
  std::ranges::reverse(result);
  return result;
}

/// Random legal configs of one space that have wanted values. The wanted knobs are set first and then those
/// that share a constraint with them, so that what is impossible shows after few steps.
class Completion {
 public:
  explicit Completion(const Space& space) : space_(&space) {
    const std::vector<Knob>& knobs = space.family().knobs();
    for (const Constraint& constraint : space.family().constraints()) {
      rules_.push_back({&constraint, {}});
      for (const std::string& knob : constraint.knobs)
        rules_.back().knobs.push_back(static_cast<size_t>(knob_index(knobs, knob)));
    }
  }

  enum class Verdict { found, impossible, gave_up };
  /// `config`: value indices.
  Verdict complete(const Wanted& wanted, std::mt19937_64& random, std::vector<size_t>& config) {
    for (int start = 0; start < kStarts; ++start) {
      order_knobs(wanted, random);
      values_ = space_->family().default_config();
      config.assign(values_.values.size(), 0);
      left_ = kPatience << start;
      if (set_from(0, wanted, random, config)) return Verdict::found;
      if (left_ > 0) return Verdict::impossible;
    }
    return Verdict::gave_up;
  }

 private:
  struct Rule {
    const Constraint* constraint;
    std::vector<size_t> knobs;
  };

  /// Sets order_, and for each place of it the rules that can be judged from there on.
  void order_knobs(const Wanted& wanted, std::mt19937_64& random) {
    const size_t count = space_->values().size();
    std::vector<bool> placed(count);
    std::vector<size_t> missing;
    for (const Rule& rule : rules_) missing.push_back(rule.knobs.size());
    order_.clear();
    due_.assign(count, {});
    auto place = [&](size_t knob) {
      if (placed[knob]) return;
      placed[knob] = true;
      order_.push_back(knob);
      for (size_t r = 0; r < rules_.size(); ++r)
        if (std::ranges::find(rules_[r].knobs, knob) != rules_[r].knobs.end() && --missing[r] == 0)
          due_[order_.size() - 1].push_back(rules_[r].constraint);
    };
    for (auto [knob, value] : wanted) place(knob);
    std::vector<size_t> any(count);
    for (size_t i = 0; i < count; ++i) any[i] = i;
    std::ranges::shuffle(any, random);
    while (order_.size() < count) {
      // The rule begun that is nearest to being judged; at first, and at last, any knob.
      const Rule* next = nullptr;
      size_t fewest = count;
      for (size_t r = 0; r < rules_.size(); ++r)
        if (missing[r] > 0 && missing[r] < rules_[r].knobs.size() && missing[r] < fewest)
          fewest = missing[r], next = &rules_[r];
      for (size_t knob : any) {
        if (placed[knob]) continue;
        if (next && std::ranges::find(next->knobs, knob) == next->knobs.end()) continue;
        place(knob);
        break;
      }
    }
  }

  bool set_from(size_t at, const Wanted& wanted, std::mt19937_64& random, std::vector<size_t>& config) {
    if (at == order_.size()) return true;
    const size_t knob = order_[at];
    const std::vector<int>& all = space_->values()[knob];
    std::vector<size_t> choices;
    for (auto [factor, value] : wanted)
      if (factor == knob) choices = {value};
    if (choices.empty()) {
      for (size_t i = 0; i < all.size(); ++i) choices.push_back(i);
      std::ranges::shuffle(choices, random);
    }
    for (size_t choice : choices) {
      if (--left_ <= 0) return false;
      values_.values[knob] = all[choice];
      config[knob] = choice;
      const ConstraintScope scope{space_->arch(), space_->cls(), space_->shape()};
      bool legal = std::ranges::all_of(due_[at], [&](const Constraint* constraint) {
        return constraint->violated(values_, scope).empty();
      });
      if (legal && set_from(at + 1, wanted, random, config)) return true;
    }
    return false;
  }

  const Space* space_;
  std::vector<Rule> rules_;
  std::vector<size_t> order_;
  std::vector<std::vector<const Constraint*>> due_;
  Config values_;
  int left_ = 0;  ///< of the patience
};

class Covering {
 public:
  Covering(const SpaceOf& space_of, const std::vector<ExtraFactor>& extra, int strength, uint64_t seed)
      : strength_(strength), random_(seed) {
    std::vector<int> none(extra.size(), 0);
    for (const std::vector<int>& values : space_of(none).values()) values_.push_back(values);
    knobs_ = values_.size();
    for (const ExtraFactor& factor : extra) {
      values_.emplace_back();
      for (int i = 0; i < factor.count; ++i) values_.back().push_back(i);
    }
    // Values of the extra factors that have the same space are the same to the constraints.
    for (std::vector<int> at = none;;) {
      const Space* space = &space_of(at);
      auto found = std::ranges::find(groups_, space, &Group::space);
      if (found == groups_.end()) {
        groups_.push_back({space, Completion(*space), {}});
        found = groups_.end() - 1;
      }
      found->extras.push_back(at);
      size_t i = 0;
      while (i < extra.size() && ++at[i] == extra[i].count) at[i++] = 0;
      if (i == extra.size()) break;
    }
  }

  CoveringSample run() {
    // Impossible pairs first: they rule out most impossible larger combinations without a search.
    for (int size = 2; size <= strength_; ++size) {
      tuples_.clear();
      std::vector<size_t> factors;
      collect(size, 0, factors);
      if (size == strength_) break;
      for (Tuple tuple : tuples_)
        if (!draw(parts(tuple))) impossible_.insert(tuple);
    }
    std::ranges::shuffle(tuples_, random_);
    uncovered_.insert(tuples_.begin(), tuples_.end());
    sample_.combinations = static_cast<int64_t>(tuples_.size());
    for (Tuple tuple : tuples_) {
      if (!uncovered_.contains(tuple)) continue;
      const Wanted wanted = parts(tuple);
      std::vector<size_t> best;
      size_t most = 0;
      for (int i = 0; i < kCandidates; ++i) {
        std::optional<std::vector<size_t>> row = draw(wanted);
        if (!row) break;
        size_t gain = 0;
        for_tuples(*row, [&](Tuple t) { gain += uncovered_.contains(t); });
        if (gain > most) most = gain, best = std::move(*row);
      }
      if (most > 0) {
        take(best);
      } else {
        uncovered_.erase(tuple);
        ++sample_.impossible;
        --sample_.combinations;
      }
    }
    return std::move(sample_);
  }

 private:
  struct Group {
    const Space* space;
    Completion completion;
    std::vector<std::vector<int>> extras;
  };

  /// Every combination of values of every `size` factors whose parts are possible.
  void collect(int size, size_t from, std::vector<size_t>& factors) {
    if (static_cast<int>(factors.size()) == size) {
      std::vector<size_t> row(values_.size());
      collect_values(factors, 0, row);
      return;
    }
    for (size_t i = from; i < values_.size(); ++i) {
      factors.push_back(i);
      collect(size, i + 1, factors);
      factors.pop_back();
    }
  }
  void collect_values(const std::vector<size_t>& factors, size_t at, std::vector<size_t>& row) {
    if (at == factors.size()) {
      Tuple tuple = 0;
      for (size_t factor : factors) tuple = add_pair(tuple, factor, row[factor]);
      bool possible = true;
      for (size_t left_out = 0; left_out < factors.size() && factors.size() > 2; ++left_out) {
        Tuple rest = 0;
        for (size_t i = 0; i < factors.size(); ++i)
          if (i != left_out) rest = add_pair(rest, factors[i], row[factors[i]]);
        possible = possible && !impossible_.contains(rest);
      }
      if (possible) {
        tuples_.push_back(tuple);
      } else {
        impossible_.insert(tuple);
        if (static_cast<int>(factors.size()) == strength_) ++sample_.impossible;
      }
      return;
    }
    for (size_t v = 0; v < values_[factors[at]].size(); ++v) {
      row[factors[at]] = v;
      collect_values(factors, at + 1, row);
    }
  }

  template <class Visit>
  void for_tuples(const std::vector<size_t>& row, const Visit& visit) const {
    for_tuples(row, 0, 0, 0, visit);
  }
  template <class Visit>
  void for_tuples(const std::vector<size_t>& row, size_t from, int taken, Tuple tuple,
                  const Visit& visit) const {
    if (taken == strength_) return visit(tuple);
    for (size_t i = from; i < row.size(); ++i)
      for_tuples(row, i + 1, taken + 1, add_pair(tuple, i, row[i]), visit);
  }

  /// A legal row (indices of values) with the wanted values, at random; nullopt if there is none.
  std::optional<std::vector<size_t>> draw(const Wanted& wanted) {
    Wanted of_knobs, of_extra;
    for (auto [factor, value] : wanted) (factor < knobs_ ? of_knobs : of_extra).emplace_back(factor, value);
    std::vector<size_t> order(groups_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random_);
    for (size_t g : order) {
      Group& group = groups_[g];
      std::vector<const std::vector<int>*> fitting;
      for (const std::vector<int>& extra : group.extras)
        if (std::ranges::all_of(of_extra, [&](const auto& pair) {
              return extra[pair.first - knobs_] == static_cast<int>(pair.second);
            }))
          fitting.push_back(&extra);
      if (fitting.empty()) continue;
      std::vector<size_t> row;
      if (group.completion.complete(of_knobs, random_, row) != Completion::Verdict::found) continue;
      for (int value : *fitting[random_() % fitting.size()]) row.push_back(static_cast<size_t>(value));
      return row;
    }
    return std::nullopt;
  }

  void take(const std::vector<size_t>& row) {
    for_tuples(row, [&](Tuple tuple) { uncovered_.erase(tuple); });
    CoveringRow taken;
    for (size_t i = 0; i < row.size(); ++i)
      (i < knobs_ ? taken.config.values : taken.extra).push_back(values_[i][row[i]]);
    sample_.rows.push_back(std::move(taken));
  }

  int strength_;
  std::mt19937_64 random_;
  size_t knobs_ = 0;
  std::vector<std::vector<int>> values_;
  std::vector<Group> groups_;
  std::vector<Tuple> tuples_;
  std::unordered_set<Tuple> uncovered_, impossible_;
  CoveringSample sample_;
};

}  // namespace

CoveringSample covering_sample(const SpaceOf& space_of, const std::vector<ExtraFactor>& extra, int strength,
                               uint64_t seed) {
  return Covering(space_of, extra, strength, seed).run();
}

}  // namespace gemmtune
