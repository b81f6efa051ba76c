// gemmtune compile --ladder: the steps of a ladder beside what they must be.
#pragma once

#include <string>
#include <vector>

#include "kernel_templates/ladder.h"
#include "tool/compile_variants.h"
#include "tool/table.h"

namespace gemmtune {

/// Steps and what the compiler made of them, in the same order. `all_as_designed` becomes false where a step
/// was not compiled without spills and with exactly the counts that the family and the file demand.
Table ladder_table(const KernelFamily& family, const std::vector<LadderStep>& steps,
                   const std::vector<CompiledVariant>& compiled, Format format, bool& all_as_designed);

}  // namespace gemmtune
