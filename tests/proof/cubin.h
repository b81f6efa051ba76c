// What a compiled kernel says of itself: its target, and its machine instructions where nvdisasm is there.
#pragma once

#include <string>

#include "kernel_templates/family.h"

namespace gemmtune {

/// The architecture of a cubin, "sm_100a", from its ELF header and ptxas' note; "" for what is no cubin.
/// Where the two disagree, both.
std::string cubin_target(const std::string& cubin);

/// nvdisasm: $GEMMTUNE_NVDISASM, $CUDA_HOME/bin, /usr/local/cuda/bin, the PATH. "" if there is none.
const std::string& nvdisasm_path();

/// Instructions of the cubin's SASS, counted as those of the PTX that they come from:
/// UTCHMMA (sm_90a: HGMMA), UTMALDG, UTMASTG, UTCBAR, SYNCS.PHASECHK.TRYWAIT, LDTM, UTCATOMSWS.FIND_AND_SET.
/// Throws std::runtime_error if nvdisasm cannot read it.
InstructionCounts count_sass(const std::string& cubin);

/// "" or the counts that are not those designed. A wait of the design is one or two: a first try and, out of
/// line, the loop that goes on trying, or the loop alone; `allocation_waits` come on top.
std::string sass_fault(const InstructionCounts& designed, int allocation_waits,
                       const InstructionCounts& sass);

}  // namespace gemmtune
