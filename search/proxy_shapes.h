// Small shapes that meet every special case of a variant; each variant passes them before its time counts.
#pragma once

#include <vector>

#include "kernel_templates/family.h"

namespace gemmtune {

/// Ragged M, N and K, one k-tile, more than two laps of the ring, fewer tiles than CTAs, and (with
/// `sm_count`) more tiles than CTAs. All obey the problem class' alignment rules.
std::vector<Shape> proxy_shapes(const TileShape& tile, const ProblemClass& cls, int sm_count);

}  // namespace gemmtune
