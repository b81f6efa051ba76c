// A covering sample: few legal configurations in which every legal combination of any `strength` knob values
// occurs. What goes wrong in a kernel is nearly always a matter of two or three knobs together.
#pragma once

#include <cstdint>
#include <vector>

#include "search/space.h"

namespace gemmtune {

/// A factor beside the knobs, with values 0 .. count - 1: element types, schedules.
struct ExtraFactor {
  std::string name;
  int count;
};

struct CoveringRow {
  Config config;
  std::vector<int> extra;  ///< one value an extra factor
};

struct CoveringSample {
  std::vector<CoveringRow> rows;
  int64_t combinations = 0;  ///< of `strength` values that some legal configuration has; all are covered
  int64_t impossible = 0;    ///< combinations that no legal configuration has
};

/// The space that holds for given values of the extra factors (a problem class has its own legal set). Must
/// have the same knobs and values for all.
using SpaceOf = std::function<const Space&(const std::vector<int>& extra)>;

/// Greedy; the same seed gives the same sample.
CoveringSample covering_sample(const SpaceOf& space_of, const std::vector<ExtraFactor>& extra, int strength,
                               uint64_t seed);

}  // namespace gemmtune
