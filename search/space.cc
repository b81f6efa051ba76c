#include "search/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "gemm/error.h"

namespace gemmtune {

void add_restriction(const KernelFamily& family, std::string_view text, Restrictions& into) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size())
    throw UsageError(fmt::format("'{}': expected KNOB=VALUE[,VALUE...], for example stages=4,6", text));
  std::string_view knob = text.substr(0, equals);
  if (knob == "swizzle") {
    std::string values(text.substr(equals));
    add_restriction(family, "swizzle_a" + values, into);
    add_restriction(family, "swizzle_b" + values, into);
    return;
  }
  const Knob& declared = family.knobs()[static_cast<size_t>(knob_index(family.knobs(), knob))];
  std::vector<int>& allowed = into[declared.name];
  allowed.clear();
  std::string_view rest = text.substr(equals + 1);
  while (true) {
    size_t comma = rest.find(',');
    int value = parse_value(declared, rest.substr(0, comma));
    if (std::ranges::find(allowed, value) == allowed.end()) allowed.push_back(value);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
}

Space::Space(const KernelFamily& family, const ArchSpec& arch, const ProblemClass& cls,
             std::optional<Shape> shape, const Restrictions& restrictions)
    : family_(family), scope_{arch, cls, shape}, constraints_at_(family.knobs().size()) {
  for (const Knob& knob : family.knobs()) {
    auto restricted = restrictions.find(knob.name);
    values_.push_back(restricted == restrictions.end() ? knob.values : restricted->second);
  }
  for (const Constraint& constraint : family.constraints()) {
    int last = 0;
    for (const std::string& knob : constraint.knobs) last = std::max(last, knob_index(family.knobs(), knob));
    constraints_at_[static_cast<size_t>(last)].push_back(&constraint);
    first_free_ = std::max(first_free_, static_cast<size_t>(last) + 1);
  }
  read_later_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    std::set<size_t> read;
    for (size_t j = i; j < values_.size(); ++j)
      for (const Constraint* constraint : constraints_at_[j])
        for (const std::string& knob : constraint->knobs)
          if (size_t at = static_cast<size_t>(knob_index(family.knobs(), knob)); at < i) read.insert(at);
    read_later_[i].assign(read.begin(), read.end());
  }
}

std::vector<std::string> Space::violations(const Config& config) const {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (std::ranges::find(values_[i], config.values[i]) != values_[i].end()) continue;
    const Knob& knob = family_.knobs()[i];
    reasons.push_back(
        fmt::format("{} = {} is excluded by --set", knob.name, value_text(knob, config.values[i])));
  }
  for (const Constraint& constraint : family_.constraints()) {
    std::string reason = constraint.violated(config, scope_);
    if (!reason.empty()) reasons.push_back(std::move(reason));
  }
  return reasons;
}

bool Space::legal(const Config& config) const { return violations(config).empty(); }

bool Space::walk(size_t knob, Config& config, const std::function<bool(const Config&)>& visit) const {
  if (knob == values_.size()) return visit(config);
  for (int value : values_[knob]) {
    config.values[knob] = value;
    bool rejected = std::ranges::any_of(constraints_at_[knob], [&](const Constraint* constraint) {
      return !constraint->violated(config, scope_).empty();
    });
    if (!rejected && !walk(knob + 1, config, visit)) return false;
  }
  return true;
}

/// Each constraint is judged once for each combination of the values that it reads, since a reason costs far
/// more to say than to look up; and each subtree is counted once for each combination that the constraints in
/// it read.
struct Space::Counting {
  /// Place of the values set so far among all combinations of `knobs`.
  struct Key {
    std::vector<size_t> knobs;
    size_t of(const std::vector<size_t>& choice, const std::vector<std::vector<int>>& values) const {
      size_t index = 0;
      for (size_t knob : knobs) index = index * values[knob].size() + choice[knob];
      return index;
    }
  };
  struct Rule {
    const Constraint* constraint;
    Key key;
    std::unordered_map<size_t, bool> violated;
  };

  bool kernels;
  std::vector<size_t> choice;  ///< indices of the values set so far
  std::vector<std::vector<Rule>> rules;
  std::vector<Key> subtree;
  std::vector<std::unordered_map<size_t, int64_t>> counts;
};

int64_t Space::count_from(size_t knob, Config& config, Counting& c) const {
  int64_t total = 1;
  if (knob >= first_free_) {
    for (size_t i = knob; i < values_.size(); ++i)
      if (!c.kernels || family_.knobs()[i].compiled) total *= static_cast<int64_t>(values_[i].size());
    return total;
  }
  const size_t key = c.subtree[knob].of(c.choice, values_);
  if (auto known = c.counts[knob].find(key); known != c.counts[knob].end()) return known->second;
  total = 0;
  for (size_t i = 0; i < values_[knob].size(); ++i) {
    config.values[knob] = values_[knob][i];
    c.choice[knob] = i;
    bool rejected = std::ranges::any_of(c.rules[knob], [&](Counting::Rule& rule) {
      auto [verdict, fresh] = rule.violated.try_emplace(rule.key.of(c.choice, values_));
      if (fresh) verdict->second = !rule.constraint->violated(config, scope_).empty();
      return verdict->second;
    });
    if (!rejected) total += count_from(knob + 1, config, c);
  }
  // Launch parameters come last in every family: all that is below is one kernel, if it is anything.
  if (c.kernels && !family_.knobs()[knob].compiled) total = std::min<int64_t>(total, 1);
  return c.counts[knob][key] = total;
}

int64_t Space::count_with(bool kernels) const {
  Counting counting{kernels, std::vector<size_t>(values_.size()), {}, {}, {}};
  counting.counts.resize(values_.size());
  for (size_t knob = 0; knob < values_.size(); ++knob) {
    counting.subtree.push_back({read_later_[knob]});
    counting.rules.emplace_back();
    for (const Constraint* constraint : constraints_at_[knob]) {
      counting.rules.back().push_back({constraint, {}, {}});
      for (const std::string& name : constraint->knobs)
        counting.rules.back().back().key.knobs.push_back(
            static_cast<size_t>(knob_index(family_.knobs(), name)));
    }
  }
  Config config = family_.default_config();
  return count_from(0, config, counting);
}

int64_t Space::count() const { return count_with(false); }

int64_t Space::count_kernels() const { return count_with(true); }

void Space::for_each(const std::function<bool(const Config&)>& visit) const {
  Config config = family_.default_config();
  walk(0, config, visit);
}

std::optional<Config> Space::sample(std::mt19937_64& random, int attempts) const {
  Config config = family_.default_config();
  for (int attempt = 0; attempt < attempts; ++attempt) {
    for (size_t i = 0; i < values_.size(); ++i) config.values[i] = values_[i][random() % values_[i].size()];
    bool ok = std::ranges::all_of(family_.constraints(), [&](const Constraint& constraint) {
      return constraint.violated(config, scope_).empty();
    });
    if (ok) return config;
  }
  return std::nullopt;
}

std::vector<Space::Rejection> Space::rejections(int draws, uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<Rejection> found;
  for (const Constraint& constraint : family_.constraints()) found.push_back({constraint.name, 0, ""});
  Config config = family_.default_config();
  for (int draw = 0; draw < draws; ++draw) {
    for (size_t i = 0; i < values_.size(); ++i) config.values[i] = values_[i][random() % values_[i].size()];
    for (size_t i = 0; i < found.size(); ++i) {
      std::string reason = family_.constraints()[i].violated(config, scope_);
      if (reason.empty()) continue;
      found[i].share += 1.0 / draws;
      if (found[i].example.empty()) found[i].example = reason;
    }
  }
  std::erase_if(found, [](const Rejection& r) { return r.share == 0; });
  std::ranges::sort(found, std::greater{}, &Rejection::share);
  return found;
}

}  // namespace gemmtune
