// What the parts of a kernel take by themselves, measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm/problem.h"
#include "gpu/device_info.h"
#include "kernel_templates/family.h"
#include "search/compiler.h"

namespace gemmtune {

/// Median burst time in us of each variant on this GPU, all of them interleaved in one run; nullopt for one
/// that did not compile or did not run. For variants with an ablation: their results are not looked at, so
/// nothing of this is ever stored. Variants that are whole are timed unproven too: for ratios within this run
/// alone.
std::vector<std::optional<double>> part_times_us(const GpuInfo& gpu, const Problem& problem,
                                                 const std::vector<Variant>& variants,
                                                 const std::vector<CompileResult>& compiled);

}  // namespace gemmtune
