#include "gpu/cuda_driver.h"

#include <fmt/format.h>

namespace gemmtune {

// cuda.h renames versioned entry points with macros (cuMemAlloc is cuMemAlloc_v2); the string must follow.
#define GEMMTUNE_QUOTE(name) #name
#define GEMMTUNE_LOAD(member)                                                 \
  if (!library_.load(member, GEMMTUNE_QUOTE(cu##member)) && missing_.empty()) \
  missing_ = fmt::format("{} lacks {}: the driver is too old", library_.path(), "cu" #member)
#define GEMMTUNE_LOAD_VERSIONED(member, symbol)           \
  if (!library_.load(member, symbol) && missing_.empty()) \
  missing_ = fmt::format("{} lacks {}: the driver is too old", library_.path(), symbol)

CudaDriver::CudaDriver() : library_({"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1"}) {
  if (!library_) {
    missing_ = "libcuda.so.1 not found: no NVIDIA driver here";
    return;
  }
  GEMMTUNE_LOAD(Init);
  GEMMTUNE_LOAD(DriverGetVersion);
  GEMMTUNE_LOAD(DeviceGetCount);
  GEMMTUNE_LOAD(DeviceGet);
  GEMMTUNE_LOAD(DeviceGetName);
  GEMMTUNE_LOAD_VERSIONED(DeviceGetUuid, "cuDeviceGetUuid_v2");
  GEMMTUNE_LOAD(DeviceGetAttribute);
  GEMMTUNE_LOAD_VERSIONED(DeviceTotalMem, "cuDeviceTotalMem_v2");
  GEMMTUNE_LOAD(DevicePrimaryCtxRetain);
  GEMMTUNE_LOAD(CtxSetCurrent);
  GEMMTUNE_LOAD(CtxSynchronize);
  GEMMTUNE_LOAD_VERSIONED(MemGetInfo, "cuMemGetInfo_v2");
  GEMMTUNE_LOAD_VERSIONED(MemAlloc, "cuMemAlloc_v2");
  GEMMTUNE_LOAD_VERSIONED(MemFree, "cuMemFree_v2");
  GEMMTUNE_LOAD(MemsetD8Async);
  GEMMTUNE_LOAD_VERSIONED(MemcpyHtoD, "cuMemcpyHtoD_v2");
  GEMMTUNE_LOAD_VERSIONED(MemcpyDtoH, "cuMemcpyDtoH_v2");
  GEMMTUNE_LOAD_VERSIONED(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  GEMMTUNE_LOAD(ModuleLoadData);
  GEMMTUNE_LOAD(ModuleLoadDataEx);
  GEMMTUNE_LOAD(ModuleUnload);
  GEMMTUNE_LOAD(ModuleGetFunction);
  GEMMTUNE_LOAD(FuncSetAttribute);
  GEMMTUNE_LOAD(FuncGetAttribute);
  GEMMTUNE_LOAD(OccupancyMaxActiveClusters);
  GEMMTUNE_LOAD(LaunchKernelEx);
  GEMMTUNE_LOAD(StreamCreate);
  GEMMTUNE_LOAD(StreamSynchronize);
  GEMMTUNE_LOAD_VERSIONED(StreamBeginCapture, "cuStreamBeginCapture_v2");
  GEMMTUNE_LOAD(StreamEndCapture);
  GEMMTUNE_LOAD(GraphInstantiateWithFlags);
  GEMMTUNE_LOAD(GraphLaunch);
  GEMMTUNE_LOAD(GraphExecDestroy);
  GEMMTUNE_LOAD(GraphDestroy);
  GEMMTUNE_LOAD(EventCreate);
  GEMMTUNE_LOAD_VERSIONED(EventDestroy, "cuEventDestroy_v2");
  GEMMTUNE_LOAD(EventRecord);
  GEMMTUNE_LOAD(EventSynchronize);
  GEMMTUNE_LOAD(EventElapsedTime);
  GEMMTUNE_LOAD(TensorMapEncodeTiled);
  GEMMTUNE_LOAD(GetErrorName);
  GEMMTUNE_LOAD(GetErrorString);
}

#undef GEMMTUNE_LOAD
#undef GEMMTUNE_LOAD_VERSIONED
#undef GEMMTUNE_QUOTE

const CudaDriver& CudaDriver::get() {
  static const CudaDriver driver;
  return driver;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char *name = nullptr, *text = nullptr;
  CudaDriver::get().GetErrorName(result, &name);
  CudaDriver::get().GetErrorString(result, &text);
  throw CudaError{result, fmt::format("{}: {} ({})", call, text ? text : "?", name ? name : "?")};
}

DeviceBuffer::DeviceBuffer(size_t bytes) : bytes_(bytes) {
  check(CudaDriver::get().MemAlloc(&address_, bytes), "cuMemAlloc");
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0) CudaDriver::get().MemFree(address_);
}

Module::Module(const std::string& cubin) {
  check(CudaDriver::get().ModuleLoadData(&module_, cubin.data()), "cuModuleLoadData");
}

Module::~Module() {
  if (module_ != nullptr) CudaDriver::get().ModuleUnload(module_);
}

CUfunction Module::function(const char* name) const {
  CUfunction function = nullptr;
  check(CudaDriver::get().ModuleGetFunction(&function, module_, name), "cuModuleGetFunction");
  return function;
}

}  // namespace gemmtune
