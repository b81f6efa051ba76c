// Knobs that need no compilation of their own: both families pass them as kernel arguments or launch
// attributes.
#pragma once

#include <vector>

#include "kernel_templates/family.h"

namespace gemmtune {

/// Values of a config. They are the last knobs of every family.
struct LaunchKnobs {
  int raster, raster_group, prefetch, l2_a, l2_b, pdl;
  explicit LaunchKnobs(const Config& config);
};

void append_launch_knobs(std::vector<Knob>& knobs);
void append_launch_constraints(std::vector<Constraint>& constraints);
/// The arguments behind all others: raster_group, raster, prefetch, l2 of the MMA's A and B (exchanged with
/// swap_ab); and the attributes.
void append_launch_arguments(LaunchPlan& plan, const LaunchKnobs& knobs, bool swap_ab);

}  // namespace gemmtune
