#include "search/space.h"

#include <fmt/format.h>

#include <algorithm>

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

Space::Space(const KernelFamily& family, const ArchSpec& arch, const ProblemClass& cls, std::optional<Shape> shape,
             const Restrictions& restrictions)
    : family_(family), scope_{arch, cls, shape}, constraints_at_(family.knobs().size()) {
  for (const Knob& knob : family.knobs()) {
    auto restricted = restrictions.find(knob.name);
    values_.push_back(restricted == restrictions.end() ? knob.values : restricted->second);
  }
  for (const Constraint& constraint : family.constraints()) {
    int last = 0;
    for (const std::string& knob : constraint.knobs) last = std::max(last, knob_index(family.knobs(), knob));
    constraints_at_[static_cast<size_t>(last)].push_back(&constraint);
  }
}

std::vector<std::string> Space::violations(const Config& config) const {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (std::ranges::find(values_[i], config.values[i]) != values_[i].end()) continue;
    const Knob& knob = family_.knobs()[i];
    reasons.push_back(fmt::format("{} = {} is excluded by --set", knob.name, value_text(knob, config.values[i])));
  }
  for (const Constraint& constraint : family_.constraints()) {
    std::string reason = constraint.violated(config, scope_);
    if (!reason.empty()) reasons.push_back(std::move(reason));
  }
  return reasons;
}

bool Space::legal(const Config& config) const { return violations(config).empty(); }

template <class Leaf>
bool Space::walk(size_t knob, Config& config, const Leaf& leaf) const {
  if (knob == values_.size()) return leaf(config, knob);
  bool all_judged = std::all_of(constraints_at_.begin() + static_cast<std::ptrdiff_t>(knob), constraints_at_.end(),
                                [](const auto& constraints) { return constraints.empty(); });
  if (all_judged && leaf(config, knob) == false) return true;  // the leaf took the whole subtree
  for (int value : values_[knob]) {
    config.values[knob] = value;
    bool rejected = std::ranges::any_of(constraints_at_[knob], [&](const Constraint* constraint) {
      return !constraint->violated(config, scope_).empty();
    });
    if (!rejected && !walk(knob + 1, config, leaf)) return false;
  }
  return true;
}

int64_t Space::count_where(const std::function<size_t(size_t)>& choices_of_free_knob) const {
  int64_t total = 0;
  Config config = family_.default_config();
  walk(0, config, [&](const Config&, size_t first_free) {
    int64_t subtree = 1;
    for (size_t i = first_free; i < values_.size(); ++i) subtree *= static_cast<int64_t>(choices_of_free_knob(i));
    total += subtree;
    // false inside the tree: do not descend. At a full config there is nothing to descend into, so go on.
    return first_free == values_.size();
  });
  return total;
}

int64_t Space::count() const {
  return count_where([&](size_t knob) { return values_[knob].size(); });
}

int64_t Space::count_kernels() const {
  return count_where([&](size_t knob) { return family_.knobs()[knob].compiled ? values_[knob].size() : 1; });
}

void Space::for_each(const std::function<bool(const Config&)>& visit) const {
  Config config = family_.default_config();
  walk(0, config, [&](const Config& at, size_t first_free) {
    return first_free == values_.size() ? visit(at) : true;
  });
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
