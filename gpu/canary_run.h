// Runs the canary. Lives in the GPU worker.
#pragma once

#include "gpu/canary.h"
#include "gpu/workbench.h"

namespace gemmtune {

/// Allocates, checks, times and frees; about 0.2 s. Throws CudaError.
CanaryReading run_canary(const SupportKernels& kernels, CUstream stream);

}  // namespace gemmtune
