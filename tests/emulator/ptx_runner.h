// Runs a kernel given as PTX text with one output buffer; for tests of single features.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "emulator/emulator.h"
#include "emulator/program.h"

namespace gemmtune::emulator {

/// Parameter bytes in declaration order; offsets come from the loaded kernel.
struct Param {
  std::vector<uint8_t> bytes;
  template <class T>
  Param(const T& value) : bytes(sizeof(T)) {
    std::memcpy(bytes.data(), &value, sizeof(T));
  }  // NOLINT: implicit on purpose
};

struct PtxRun {
  std::string target = "sm_90a";
  std::string params;  ///< ".param .u64 out, ..."
  std::string body;
  Dim3 grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
  std::optional<Dim3> preferred_cluster;
  uint32_t smem_bytes = 0;
  Schedule schedule;
  int sm_count = 148;

  /// `raw` is the dynamic shared memory, "out" must be the first parameter.
  LaunchResult run(Device& device, const std::vector<Param>& values) const {
    Module module(".version 9.0\n.target " + target +
                  "\n.address_size 64\n.extern .shared .align 1024 .b8 raw[];\n" + ".visible .entry test(" +
                  params + ")\n{\n" + body + "\nret;\n}\n");
    LaunchConfig config;
    config.kernel = "test";
    config.grid = grid;
    config.block = block;
    config.cluster = cluster;
    config.preferred_cluster = preferred_cluster;
    config.dynamic_smem_bytes = smem_bytes;
    config.schedule = schedule;
    config.sm_count = sm_count;
    config.livelock_instructions = 100'000;
    const Function& f = *module.program().find_entry("test");
    config.params.resize(f.param_bytes);
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(config.params.data() + f.params[i].offset, values[i].bytes.data(), values[i].bytes.size());
    return device.launch(module, config);
  }
};

template <class T>
std::vector<T> read_buffer(const Device& device, uint64_t address, size_t count) {
  std::vector<T> out(count);
  device.copy_out(address, {reinterpret_cast<uint8_t*>(out.data()), count * sizeof(T)});
  return out;
}

template <class T>
uint64_t make_buffer(Device& device, const std::vector<T>& values) {
  uint64_t address = device.allocate(values.size() * sizeof(T));
  device.copy_in(address, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
  return address;
}

}  // namespace gemmtune::emulator
