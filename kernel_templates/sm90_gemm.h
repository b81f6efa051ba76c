#pragma once
#include "kernel_templates/family.h"
namespace gemmtune {
/// wgmma kernels for sm_90a: sm90_gemm.cu.
const KernelFamily& sm90_gemm_family();
}  // namespace gemmtune
