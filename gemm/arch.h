// Architectures that kernels are generated for, and the devices whose published rates bound a roofline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gemmtune {

/// One compile target. Limits: ptx-facts section 7 / CUDA programming guide, "Technical specifications".
struct ArchSpec {
  std::string_view name;     ///< "sm_100a", the exact NVRTC target
  int cc_major, cc_minor;    ///< compute capability whose devices run this cubin
  int smem_per_block_bytes;  ///< opt-in maximum of dynamic shared memory
  int registers_per_sm;      ///< 32-bit registers
  int max_registers_per_thread;
  int max_threads_per_block;
  int max_cluster_size;  ///< portable: needs no function attribute
  int tmem_columns;      ///< 0 where there is no tensor memory
  bool has_tcgen05, has_wgmma;
  int f16_flop_per_sm_cycle;          ///< dense f16/bf16 tensor rate
  std::string_view reference_device;  ///< DeviceSpec used where no device is present
};

std::span<const ArchSpec> archs();
/// Throws UsageError that names the known ones (and the nearest).
const ArchSpec& find_arch(std::string_view name);
/// nullptr where no family covers this compute capability (sm_80, sm_120 ...).
const ArchSpec* arch_for_compute_capability(int major, int minor);

/// Published rates of a device, for rooflines and predictions. Never a measurement of the device at hand.
struct DeviceSpec {
  std::string_view name;
  int sm_count;
  int64_t l2_bytes;
  double dram_tb_per_s;     ///< vendor sheet
  double f16_dense_tflops;  ///< vendor sheet, at boost clock
};
std::span<const DeviceSpec> device_specs();
/// By exact name ("H200") or as a word of a driver's device name ("NVIDIA H200"). nullptr if unknown.
const DeviceSpec* find_device_spec(std::string_view name);

}  // namespace gemmtune
