#pragma once
#include "kernel_templates/family.h"
namespace gemmtune {
/// tcgen05 kernels for sm_100a and sm_103a: sm100_gemm.cu.
const KernelFamily& sm100_gemm_family();
}  // namespace gemmtune
