// Runs the cases of one tests/hardware file on GPU 0, in a process of its own: a case that faults ends the
// process, and the test starts another behind it.
#pragma once

#include <string>
#include <vector>

namespace gemmtune {

/// The role of this process: `gpu_tests hardware-cases FILE FIRST`. Prints a line a case, "ok INDEX WORD WORD
/// ..." or "failed INDEX WHY"; returns after the first failure that may have spoiled the context.
int run_hardware_cases(const std::vector<std::string>& arguments);

}  // namespace gemmtune
