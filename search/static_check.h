// Which compiled kernels are not worth a launch.
#pragma once

#include <string>

#include "gemm/arch.h"
#include "search/trial.h"

namespace gemmtune {

/// "" or why the kernel is rejected before it runs: spills, a stack frame, budgets of the architecture.
/// `threads`: of a CTA. `evidence.dynamic_smem_bytes` and `tmem_columns` come from the launch plan.
std::string static_violation(const StaticEvidence& evidence, int threads, const ArchSpec& arch);
std::string static_violation(const Variant& variant, const StaticEvidence& evidence);

/// The compiler's account with what only the variant's design and launch plan know: dynamic shared memory,
/// tensor-memory columns.
StaticEvidence planned_evidence(const Variant& variant, StaticEvidence compiled);

}  // namespace gemmtune
