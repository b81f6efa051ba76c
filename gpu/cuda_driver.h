// The CUDA driver, loaded at run time: function table, error check, owned handles.
#pragma once

#include <cuda.h>

#include <source_location>
#include <string>
#include <utility>

#include "gpu/dynamic_library.h"

namespace gemmtune {

/// A driver call failed. Inside a worker this becomes an outcome; it never leaves it as an exception.
struct CudaError {
  CUresult code;
  std::string text;  ///< "cuModuleLoadData: invalid image (CUDA_ERROR_INVALID_IMAGE)"
};

/// Function table of libcuda. Members are named as in cuda.h without the prefix.
class CudaDriver {
 public:
  /// The process-wide table; `available()` is false where there is no driver.
  static const CudaDriver& get();
  bool available() const { return static_cast<bool>(library_) && missing_.empty(); }
  /// Why not: "libcuda.so.1 not found", or the symbol that an old driver lacks.
  const std::string& unavailable_reason() const { return missing_; }

  decltype(&::cuInit) Init;
  decltype(&::cuDriverGetVersion) DriverGetVersion;
  decltype(&::cuDeviceGetCount) DeviceGetCount;
  decltype(&::cuDeviceGet) DeviceGet;
  decltype(&::cuDeviceGetName) DeviceGetName;
  decltype(&::cuDeviceGetUuid) DeviceGetUuid;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute;
  decltype(&::cuDeviceTotalMem) DeviceTotalMem;
  decltype(&::cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain;
  decltype(&::cuCtxSetCurrent) CtxSetCurrent;
  decltype(&::cuCtxSynchronize) CtxSynchronize;
  decltype(&::cuMemGetInfo) MemGetInfo;
  decltype(&::cuMemAlloc) MemAlloc;
  decltype(&::cuMemFree) MemFree;
  decltype(&::cuMemsetD8Async) MemsetD8Async;
  decltype(&::cuMemcpyHtoD) MemcpyHtoD;
  decltype(&::cuMemcpyDtoH) MemcpyDtoH;
  decltype(&::cuMemcpyDtoDAsync) MemcpyDtoDAsync;
  decltype(&::cuModuleLoadData) ModuleLoadData;
  decltype(&::cuModuleLoadDataEx) ModuleLoadDataEx;
  decltype(&::cuModuleUnload) ModuleUnload;
  decltype(&::cuModuleGetFunction) ModuleGetFunction;
  decltype(&::cuFuncSetAttribute) FuncSetAttribute;
  decltype(&::cuFuncGetAttribute) FuncGetAttribute;
  decltype(&::cuOccupancyMaxActiveClusters) OccupancyMaxActiveClusters;
  decltype(&::cuLaunchKernelEx) LaunchKernelEx;
  decltype(&::cuStreamCreate) StreamCreate;
  decltype(&::cuStreamSynchronize) StreamSynchronize;
  decltype(&::cuStreamBeginCapture) StreamBeginCapture;
  decltype(&::cuStreamEndCapture) StreamEndCapture;
  decltype(&::cuGraphInstantiateWithFlags) GraphInstantiateWithFlags;
  decltype(&::cuGraphLaunch) GraphLaunch;
  decltype(&::cuGraphExecDestroy) GraphExecDestroy;
  decltype(&::cuGraphDestroy) GraphDestroy;
  decltype(&::cuEventCreate) EventCreate;
  decltype(&::cuEventDestroy) EventDestroy;
  decltype(&::cuEventRecord) EventRecord;
  decltype(&::cuEventSynchronize) EventSynchronize;
  decltype(&::cuEventElapsedTime) EventElapsedTime;
  decltype(&::cuTensorMapEncodeTiled) TensorMapEncodeTiled;
  decltype(&::cuGetErrorName) GetErrorName;
  decltype(&::cuGetErrorString) GetErrorString;

 private:
  CudaDriver();
  DynamicLibrary library_;
  std::string missing_;
};

/// Throws CudaError unless the call succeeded.
void check(CUresult result, const char* call);

/// Device memory, freed at the end of its scope.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBuffer();
  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
};

/// A point in a stream, for timing.
class Event {
 public:
  Event() { check(CudaDriver::get().EventCreate(&event_, CU_EVENT_DEFAULT), "cuEventCreate"); }
  Event(const Event&) = delete;
  ~Event() { CudaDriver::get().EventDestroy(event_); }
  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

/// A loaded cubin.
class Module {
 public:
  Module() = default;
  explicit Module(const std::string& cubin);
  Module(Module&& other) noexcept : module_(std::exchange(other.module_, nullptr)) {}
  Module& operator=(Module&& other) noexcept {
    std::swap(module_, other.module_);
    return *this;
  }
  ~Module();
  CUfunction function(const char* name) const;

 private:
  CUmodule module_ = nullptr;
};

}  // namespace gemmtune
