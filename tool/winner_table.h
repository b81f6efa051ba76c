// The answer table that sweep and best print.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "db/queries.h"
#include "gemm/arch.h"
#include "gemm/shape_list.h"
#include "tool/table.h"

namespace gemmtune {

/// One row a problem (with `top` > 1 also its runners-up): configuration, time, TFLOP/s, share of the
/// roofline, ties, how sure that is, and how it was obtained. `shapes` gives names, in any order.
/// `device_uuid` empty: every device.
std::string winner_table(Store& store, const std::vector<Problem>& problems,
                         std::span<const ListedShape> shapes, const std::string& device_uuid,
                         const Timing& timing, const DeviceSpec& rates, int top, Format format);

/// Knobs off their default; the whole text where the family is not known.
std::string brief_config(const RankedTrial& trial);

/// Whose time it is: "" for the kernel's; where launching takes longer, the kernel's time in a graph.
std::string launch_text(const std::optional<LaunchCost>& cost);

/// The same for answers at hand.
Table answers_table(const std::vector<BestAnswer>& answers, std::span<const ListedShape> shapes,
                    const DeviceSpec* rates);

}  // namespace gemmtune
