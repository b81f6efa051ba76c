#include "gpu/device_info.h"

#include <fmt/format.h>

#include <cstring>

#include "gemm/arch.h"
#include "gpu/cublaslt.h"
#include "gpu/cuda_driver.h"
#include "gpu/nvml.h"

namespace gemmtune {

std::string uuid_text(const unsigned char (&b)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", b[i]);
  }
  return text;
}

GpuList list_gpus() {
  GpuList list;
  const CudaDriver& cuda = CudaDriver::get();
  if (!cuda.available()) {
    list.driver_problem = cuda.unavailable_reason();
    return list;
  }
  try {
    check(cuda.Init(0), "cuInit");
    check(cuda.DriverGetVersion(&list.driver_cuda_version), "cuDriverGetVersion");
    int count = 0;
    check(cuda.DeviceGetCount(&count), "cuDeviceGetCount");
    for (int i = 0; i < count; ++i) {
      GpuInfo gpu;
      gpu.index = i;
      CUdevice device;
      check(cuda.DeviceGet(&device, i), "cuDeviceGet");
      auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        check(cuda.DeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
        return value;
      };
      char text[256] = {};
      check(cuda.DeviceGetName(text, sizeof text, device), "cuDeviceGetName");
      CUuuid uuid;
      check(cuda.DeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
      unsigned char bytes[16];
      std::memcpy(bytes, uuid.bytes, sizeof bytes);
      size_t memory = 0;
      check(cuda.DeviceTotalMem(&memory, device), "cuDeviceTotalMem");
      gpu.memory_bytes = static_cast<int64_t>(memory);
      gpu.cc_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
      gpu.cc_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
      gpu.record.uuid = uuid_text(bytes);
      gpu.record.name = text;
      gpu.record.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
      gpu.record.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
      gpu.record.max_sm_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
      gpu.record.driver_version =
          fmt::format("CUDA {}.{}", list.driver_cuda_version / 1000, list.driver_cuda_version % 1000 / 10);
      if (const ArchSpec* arch = arch_for_compute_capability(gpu.cc_major, gpu.cc_minor))
        gpu.record.arch = arch->name;
      list.gpus.push_back(gpu);
    }
  } catch (const CudaError& error) {
    list.driver_problem = error.text;
  }
  return list;
}

std::string find_cublaslt() {
  CublasLt library;
  return library ? library.path() : std::string();
}

std::string find_nvml() {
  Nvml nvml;
  return nvml ? nvml.path() : std::string();
}

}  // namespace gemmtune
