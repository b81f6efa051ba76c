#include "tests/gpu/hardware_runner.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "gpu/cuda_driver.h"
#include "tests/hardware/case_file.h"

namespace gemmtune {
namespace {

using hardware::Case;

/// A PTX module assembled by the driver, with its log as the error.
class AssembledModule {
 public:
  explicit AssembledModule(const std::string& ptx) {
    std::array<char, 4096> log{};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CUresult result = CudaDriver::get().ModuleLoadDataEx(&module_, ptx.c_str(), 2, options, values);
    if (result != CUDA_SUCCESS) throw CudaError{result, fmt::format("does not assemble: {}", log.data())};
  }
  ~AssembledModule() { CudaDriver::get().ModuleUnload(module_); }
  AssembledModule(const AssembledModule&) = delete;
  AssembledModule& operator=(const AssembledModule&) = delete;

  CUfunction kernel() const {
    CUfunction function = nullptr;
    check(CudaDriver::get().ModuleGetFunction(&function, module_, "test"), "cuModuleGetFunction");
    return function;
  }

 private:
  CUmodule module_ = nullptr;
};

CUtensorMap encoded(const hardware::Map& map, CUdeviceptr address) {
  CUtensorMap out;
  std::array<cuuint64_t, 5> dims{}, strides{};
  std::array<cuuint32_t, 5> box{}, steps{};
  for (size_t i = 0; i < 5; ++i)
    dims[i] = map.dims[i], box[i] = map.box[i], steps[i] = map.element_strides[i];
  for (size_t i = 0; i < 4; ++i) strides[i] = map.strides_bytes[i];
  check(CudaDriver::get().TensorMapEncodeTiled(
            &out, static_cast<CUtensorMapDataType>(map.type), map.rank,
            reinterpret_cast<void*>(address + map.offset_bytes), dims.data(), strides.data(), box.data(),
            steps.data(), static_cast<CUtensorMapInterleave>(map.interleave),
            static_cast<CUtensorMapSwizzle>(map.swizzle), CU_TENSOR_MAP_L2_PROMOTION_NONE,
            map.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                         : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return out;
}

DeviceBuffer upload(const std::vector<uint8_t>& bytes) {
  DeviceBuffer buffer(bytes.size());
  check(CudaDriver::get().MemcpyHtoD(buffer.address(), bytes.data(), bytes.size()), "cuMemcpyHtoD");
  return buffer;
}

std::vector<uint32_t> run(const Case& c) {
  const CudaDriver& cuda = CudaDriver::get();
  AssembledModule module(c.ptx());
  CUfunction kernel = module.kernel();
  std::vector<uint8_t> output = c.initial_output();
  DeviceBuffer in = upload(c.operands()), memory = upload(c.memory()), out = upload(output);
  CUdeviceptr addresses[] = {in.address(), memory.address(), out.address()};
  std::vector<CUtensorMap> maps;
  for (const hardware::Map& map : c.maps)
    maps.push_back(encoded(map, map.at_out ? out.address() : memory.address()));
  std::vector<void*> arguments = {&addresses[0], &addresses[1], &addresses[2]};
  for (CUtensorMap& map : maps) arguments.push_back(&map);
  check(cuda.FuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              static_cast<int>(c.smem_bytes)),
        "cuFuncSetAttribute");
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {c.cluster[0], c.cluster[1], c.cluster[2]};
  CUlaunchConfig config{};
  config.gridDimX = c.grid[0], config.gridDimY = c.grid[1], config.gridDimZ = c.grid[2];
  config.blockDimX = c.block[0], config.blockDimY = c.block[1], config.blockDimZ = c.block[2];
  config.sharedMemBytes = c.smem_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cuda.LaunchKernelEx(&config, kernel, arguments.data(), nullptr), "cuLaunchKernelEx");
  check(cuda.CtxSynchronize(), "the kernel");
  check(cuda.MemcpyDtoH(output.data(), out.address(), output.size()), "cuMemcpyDtoH");
  std::vector<uint32_t> words(output.size() / 4);
  std::memcpy(words.data(), output.data(), output.size());
  return words;
}

}  // namespace

int run_hardware_cases(const std::vector<std::string>& arguments) {
  if (arguments.size() != 3) return 2;
  size_t index = std::stoul(arguments[2]);
  try {
    hardware::CaseFile file = hardware::read_case_file(arguments[1]);
    const CudaDriver& cuda = CudaDriver::get();
    if (!cuda.available()) throw std::runtime_error(cuda.unavailable_reason());
    check(cuda.Init(0), "cuInit");
    CUdevice device;
    CUcontext context;
    check(cuda.DeviceGet(&device, 0), "cuDeviceGet");
    check(cuda.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuda.CtxSetCurrent(context), "cuCtxSetCurrent");
    for (; index < file.cases.size(); ++index) {
      std::string line = fmt::format("ok {}", index);
      for (uint32_t word : run(file.cases[index])) line += fmt::format(" {:08x}", word);
      fmt::print("{}\n", line);
      std::fflush(stdout);
    }
  } catch (const CudaError& error) {
    fmt::print("failed {} {}\n", index, error.text.substr(0, error.text.find('\n')));
    return 1;
  } catch (const std::exception& error) {
    fmt::print("failed {} {}\n", index, error.what());
    return 1;
  }
  return 0;
}

}  // namespace gemmtune
