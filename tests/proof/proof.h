// One configuration on the stand: compiled, held to what its design says of it, and run on the emulator.
#pragma once

#include <string>

#include "emulator/schedule.h"
#include "gemm/fill.h"
#include "gpu/nvrtc.h"
#include "kernel_templates/family.h"
#include "search/compiler.h"

namespace gemmtune {

/// "" or what is wrong with a compiled kernel: it does not compile, spills, needs more registers, shared
/// memory or tensor memory than there is, its cubin is for another architecture, or its PTX has other
/// instructions than its design.
std::string static_fault(const Variant& variant, const CompileResult& compiled);

/// How a kernel is run.
struct Trip {
  Shape shape;
  int sm_count = 1;
  Fill fill = Fill::rounding;
  float alpha = 1, beta = 0;
  emulator::Schedule schedule;
  int host_threads = 1;
  uint64_t instruction_limit = 0;  ///< warp instructions of a cluster; 0: none
};

/// "" or what went wrong: a diagnosis, or elements that are not the reference's, bit for bit.
std::string run_fault(const Variant& variant, const std::string& ptx, const Trip& trip);

/// A ragged problem for a variant: a few tiles along each dimension, more than the clusters that `sm_count`
/// holds, the last ones partial; the ring wraps, and parts along K have different lengths. `pick` chooses
/// among several depths, one of them without work for some parts.
Trip ragged_trip(const Variant& variant, uint64_t pick);

}  // namespace gemmtune
