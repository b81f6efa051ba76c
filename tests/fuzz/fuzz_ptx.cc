// libFuzzer target: any text is either refused with PtxError, or runs for a bounded time and ends with a
// result. What it must never do is crash, hang, or take memory without bound.
#include <algorithm>
#include <cstring>
#include <string>

#include "emulator/emulator.h"
#include "emulator/program.h"

namespace gemmtune::emulator {
namespace {

constexpr uint64_t kBufferBytes = 16384;
constexpr uint64_t kInstructions = 20'000;  ///< of a cluster: loops that matter are found long before

/// A map of 64 x 64 halves inside the buffer: what a 128-byte parameter most likely is.
TensorMapBytes some_map(uint64_t buffer) {
  TensorMap map;
  map.type = TensorType::f16;
  map.address = buffer;
  map.dims = {64, 64};
  map.strides_bytes = {128};
  map.box = {64, 16};
  map.swizzle = TensorSwizzle::b128;
  return encode_tensor_map(map);
}

void run(Module& module, const std::string& kernel, Schedule schedule) {
  const Function& f = *module.program().find_entry(kernel);
  Device device;
  uint64_t buffer = device.allocate(kBufferBytes);
  device.fill(buffer, 0, kBufferBytes);
  LaunchConfig config;
  config.kernel = kernel;
  config.block = f.required_block[0] ? Dim3{f.required_block[0], f.required_block[1], f.required_block[2]}
                                     : Dim3{f.max_block[0] ? std::min(64u, f.max_block[0]) : 64, 1, 1};
  config.cluster = f.required_cluster[0]
                       ? Dim3{f.required_cluster[0], f.required_cluster[1], f.required_cluster[2]}
                       : Dim3{2, 1, 1};
  config.grid = config.cluster;
  config.dynamic_smem_bytes = 16384;
  config.schedule = schedule;
  config.host_threads = 1;
  config.livelock_instructions = kInstructions / 2;
  config.instruction_limit = kInstructions;
  config.params.resize(f.param_bytes);
  TensorMapBytes map = some_map(buffer);
  for (const FunctionParam& p : f.params) {
    uint8_t* at = config.params.data() + p.offset;
    if (p.bytes == 8) std::memcpy(at, &buffer, 8);
    if (p.bytes == 128) std::memcpy(at, map.data(), 128);
    if (p.bytes == 4) *at = 64;
  }
  device.launch(module, config);
}

}  // namespace
}  // namespace gemmtune::emulator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gemmtune::emulator;
  try {
    Module module(std::string(reinterpret_cast<const char*>(data), size));
    size_t count = 0;
    for (const std::string& kernel : module.kernels()) {
      if (++count > 2) break;
      run(module, kernel, {SchedulePolicy::random, size});
      run(module, kernel, {SchedulePolicy::lazy, 0});
    }
  } catch (const PtxError&) {
  }
  return 0;
}
