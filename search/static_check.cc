#include "search/static_check.h"

#include <fmt/format.h>

#include <bit>

namespace gemmtune {

std::string static_violation(const StaticEvidence& e, int threads, const ArchSpec& arch) {
  if (e.spill_store_bytes + e.spill_load_bytes > 0)
    return fmt::format("spills: {} bytes stored, {} bytes loaded", e.spill_store_bytes, e.spill_load_bytes);
  if (e.stack_bytes > 0) return fmt::format("stack frame of {} bytes", e.stack_bytes);
  int smem = e.static_smem_bytes + e.dynamic_smem_bytes;
  if (smem > arch.smem_per_block_bytes)
    return fmt::format("{} bytes of shared memory > {}", smem, arch.smem_per_block_bytes);
  // Registers are granted to warps in units of 8 a thread.
  int granted = (e.registers + 7) / 8 * 8;
  if (granted * threads > arch.registers_per_sm)
    return fmt::format("{} registers x {} threads > {}", granted, threads, arch.registers_per_sm);
  if (e.tmem_columns > arch.tmem_columns)
    return fmt::format("{} columns of tensor memory > {}", e.tmem_columns, arch.tmem_columns);
  if (e.tmem_columns > 0 &&
      (e.tmem_columns < 32 || !std::has_single_bit(static_cast<unsigned>(e.tmem_columns))))
    return fmt::format("{} columns of tensor memory: allocations are powers of two from 32", e.tmem_columns);
  return "";
}

}  // namespace gemmtune
