// What the machine has: driver, GPUs, and what each can run.
#pragma once

#include <string>
#include <vector>

#include "search/trial.h"

namespace gemmtune {

struct GpuInfo {
  int index = 0;
  DeviceRecord record;  ///< record.arch is empty where no family covers the compute capability
  int cc_major = 0, cc_minor = 0;
  int64_t memory_bytes = 0;
};

struct GpuList {
  std::string driver_problem;   ///< why there is no usable driver; empty if there is
  int driver_cuda_version = 0;  ///< 13000 for CUDA 13.0
  std::vector<GpuInfo> gpus;
};

/// Asks the driver without creating a context.
GpuList list_gpus();

/// "GPU-xxxxxxxx-...", as NVML spells it.
std::string uuid_text(const unsigned char (&bytes)[16]);

/// Path of cuBLASLt if it can be used, else empty.
std::string find_cublaslt();
/// Path of NVML if it can be opened, else empty.
std::string find_nvml();

}  // namespace gemmtune
