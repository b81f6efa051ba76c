// Variants through the compiler: what `compile` shows of each, for its own table and for a ladder's.
#pragma once

#include <string>
#include <vector>

#include "search/compiler.h"

namespace gemmtune {

struct CompiledVariant {
  CompileResult result;
  StaticEvidence evidence;  ///< with shared memory and tensor memory of the launch
  std::string rejected;     ///< "" or why the static check refuses it
  bool counts_as_designed = false;
};

/// In order. Variants that differ in launch parameters alone are compiled once. `jobs` workers.
/// `dump`: a folder that gets source, PTX and cubin of each, or "". Throws EnvironmentError.
std::vector<CompiledVariant> compile_variants(const std::vector<Variant>& variants, int jobs,
                                              const std::string& dump);

}  // namespace gemmtune
