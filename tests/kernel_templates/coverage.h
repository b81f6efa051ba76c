// One legal config for each value of each knob: the rows of the coverage tables.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "search/space.h"

namespace gemmtune {

struct CoverageRow {
  std::string knob, value;
  Config config;
};

/// `config`, or the first legal config that differs from it in `changes` knobs at most, `fixed` not among
/// them.
inline std::optional<Config> nearest_legal(const Space& space, const Config& config, size_t fixed,
                                           int changes) {
  if (space.legal(config)) return config;
  if (changes == 0) return std::nullopt;
  for (size_t i = 0; i < space.values().size(); ++i) {
    if (i == fixed) continue;
    for (int value : space.values()[i]) {
      if (value == config.values[i]) continue;
      Config other = config;
      other.values[i] = value;
      if (std::optional<Config> found = nearest_legal(space, other, fixed, changes - 1)) return found;
    }
  }
  return std::nullopt;
}

/// Default config with one knob changed; where that is illegal, the legal one with the fewest other changes.
inline std::vector<CoverageRow> coverage_rows(const KernelFamily& family, const ArchSpec& arch,
                                              const ProblemClass& cls) {
  std::vector<CoverageRow> rows;
  Config base = family.default_config();
  for (size_t i = 0; i < family.knobs().size(); ++i) {
    const Knob& knob = family.knobs()[i];
    for (int value : knob.values) {
      Space space(family, arch, cls, std::nullopt);
      Config changed = base;
      changed.values[i] = value;
      std::optional<Config> legal;
      for (int others = 0; others <= 3 && !legal; ++others) legal = nearest_legal(space, changed, i, others);
      EXPECT_TRUE(legal) << knob.name << "=" << value_text(knob, value)
                         << " is legal in no config near the default";
      if (legal) rows.push_back({knob.name, value_text(knob, value), *legal});
    }
  }
  return rows;
}

}  // namespace gemmtune
