#include "kernel_templates/launch_knobs.h"

#include <utility>

namespace gemmtune {
namespace {

enum Raster { kAlongM, kAlongN, kHilbert };  // twin of device/raster.cuh
constexpr int kDefaultGroup = 8;

Knob l2_knob(const char* name, const char* operand) {
  return {name,
          {0, 1, 2},
          0,
          std::string("what L2 does with lines of ") + operand + " when it needs room",
          {"normal", "evict_first", "evict_last"},
          false};
}

}  // namespace

LaunchKnobs::LaunchKnobs(const Config& config) {
  size_t i = config.values.size() - 6;
  for (int* field : {&raster, &raster_group, &prefetch, &l2_a, &l2_b, &pdl}) *field = config.values[i++];
}

void append_launch_knobs(std::vector<Knob>& knobs) {
  knobs.push_back({"raster",
                   {kAlongM, kAlongN, kHilbert},
                   kAlongM,
                   "order in which output tiles are walked: bands along M or N, or a Hilbert curve",
                   {"m", "n", "hilbert"},
                   false});
  knobs.push_back({"raster_group",
                   {1, 2, 4, 8, 16},
                   kDefaultGroup,
                   "width of a band of tiles walked together",
                   {},
                   false});
  knobs.push_back({"prefetch",
                   {0, 1, 2, 4, 8},
                   0,
                   "k-tiles ahead of the copies that are sent from DRAM to L2; 0: none",
                   {},
                   false});
  knobs.push_back(l2_knob("l2_a", "A"));
  knobs.push_back(l2_knob("l2_b", "B"));
  knobs.push_back({"pdl",
                   {0, 1},
                   0,
                   "programmatic dependent launch: start while the launch before in the stream still ends",
                   {"no", "yes"},
                   false});
}

void append_launch_constraints(std::vector<Constraint>& constraints) {
  constraints.push_back(
      {"hilbert", {"raster", "raster_group"}, [](const Config& c, const ConstraintScope&) {
         LaunchKnobs k(c);
         // One of five configs that would all be the same: the default's, so that a single step leads there.
         return k.raster == kHilbert && k.raster_group != kDefaultGroup
                    ? std::string("raster = hilbert has no bands: raster_group stays 8, its default")
                    : std::string();
       }});
}

void append_launch_arguments(LaunchPlan& plan, const LaunchKnobs& k, bool swap_ab) {
  auto [l2_a, l2_b] = swap_ab ? std::pair(k.l2_b, k.l2_a) : std::pair(k.l2_a, k.l2_b);
  for (int value : {k.raster_group, k.raster, k.prefetch, l2_a, l2_b}) plan.args.emplace_back(int32_t{value});
  plan.programmatic = k.pdl != 0;
}

}  // namespace gemmtune
