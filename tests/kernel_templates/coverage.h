// One legal config for each value of each knob: the rows of the coverage tables.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "search/space.h"

namespace gemmtune {

struct CoverageRow {
  std::string knob, value;
  Config config;
};

/// Default config with one knob changed; where that is illegal, the legal draw with the fewest other changes.
inline std::vector<CoverageRow> coverage_rows(const KernelFamily& family, const ArchSpec& arch,
                                              const ProblemClass& cls) {
  std::vector<CoverageRow> rows;
  Config base = family.default_config();
  for (size_t i = 0; i < family.knobs().size(); ++i) {
    const Knob& knob = family.knobs()[i];
    for (int value : knob.values) {
      Space space(family, arch, cls, std::nullopt, {{knob.name, {value}}});
      Config best = base;
      best.values[i] = value;
      if (!space.legal(best)) {
        std::mt19937_64 random(1);
        int fewest = 1000;
        for (int draw = 0; draw < 400; ++draw) {
          std::optional<Config> config = space.sample(random);
          if (!config) break;
          int changed = 0;
          for (size_t j = 0; j < base.values.size(); ++j) changed += config->values[j] != base.values[j];
          if (changed < fewest) fewest = changed, best = *config;
        }
      }
      EXPECT_TRUE(space.legal(best)) << knob.name << "=" << value_text(knob, value)
                                     << " is legal in no config";
      rows.push_back({knob.name, value_text(knob, value), best});
    }
  }
  return rows;
}

}  // namespace gemmtune
