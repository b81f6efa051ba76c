// The legal configurations of one family for one architecture and problem class (and shape), and why others
// are not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernel_templates/family.h"

namespace gemmtune {

/// Allowed values per knob name, from --set. A knob that is not named keeps all its values.
using Restrictions = std::map<std::string, std::vector<int>, std::less<>>;

/// Parses "stages=4,6" or "swizzle=64B" (both swizzles) into `into`. Throws UsageError with a suggestion.
void add_restriction(const KernelFamily& family, std::string_view text, Restrictions& into);

class Space {
 public:
  /// Without a shape: configurations that are legal for some shape. Restrictions narrow the knobs' values.
  Space(const KernelFamily& family, const ArchSpec& arch, const ProblemClass& cls, std::optional<Shape> shape,
        const Restrictions& restrictions = {});

  /// Reasons why `config` is illegal, one line each; empty if it is legal.
  std::vector<std::string> violations(const Config& config) const;
  bool legal(const Config& config) const;

  int64_t count() const;
  /// Distinct kernels behind them: configs that differ in launch parameters alone share one.
  int64_t count_kernels() const;
  /// Calls `visit` for every legal config in lexical order of the knobs' values until it returns false.
  void for_each(const std::function<bool(const Config&)>& visit) const;
  /// A uniformly drawn legal config; nullopt if `attempts` draws found none.
  std::optional<Config> sample(std::mt19937_64& random, int attempts = 20000) const;
  /// How often each constraint rejects a uniformly drawn config, most frequent first: (name, share, example
  /// reason).
  struct Rejection {
    std::string constraint;
    double share;
    std::string example;
  };
  std::vector<Rejection> rejections(int draws, uint64_t seed) const;

  const KernelFamily& family() const { return family_; }
  const ArchSpec& arch() const { return scope_.arch; }
  const ProblemClass& cls() const { return scope_.cls; }
  const std::optional<Shape>& shape() const { return scope_.shape; }
  const std::vector<std::vector<int>>& values() const { return values_; }

 private:
  /// Depth-first over the knobs in order, leaving out subtrees that a constraint rejects. False if stopped.
  bool walk(size_t knob, Config& config, const std::function<bool(const Config&)>& visit) const;
  /// What a count has learnt (space.cc).
  struct Counting;
  /// Legal configs of a subtree; or distinct kernels: one for all that differ in launch parameters.
  int64_t count_from(size_t knob, Config& config, Counting& counting) const;
  int64_t count_with(bool kernels) const;

  const KernelFamily& family_;
  ConstraintScope scope_;
  std::vector<std::vector<int>> values_;
  /// constraints_at_[i]: those that can be judged once knob i is set and not before. Index 0 also holds those
  /// that read no knob.
  std::vector<std::vector<const Constraint*>> constraints_at_;
  /// read_later_[i]: knobs before i that a constraint at i or behind it reads.
  std::vector<std::vector<size_t>> read_later_;
  size_t first_free_ = 0;  ///< from this knob on no constraint is left
};

}  // namespace gemmtune
