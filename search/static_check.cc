#include "search/static_check.h"

#include <fmt/format.h>

#include <bit>

namespace gemmtune {
namespace {

/// Block and shared memory are the same for every shape.
LaunchPlan any_plan(const Variant& v) {
  return v.family->plan(v.config, v.cls, *v.arch, {1, 1, 1}, {1, 1}, 1, 0);
}

}  // namespace

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

std::string static_violation(const Variant& v, const StaticEvidence& evidence) {
  return static_violation(evidence, static_cast<int>(any_plan(v).block.x), *v.arch);
}

StaticEvidence planned_evidence(const Variant& v, StaticEvidence evidence) {
  evidence.dynamic_smem_bytes = any_plan(v).dynamic_smem_bytes;
  evidence.tmem_columns = v.family->tmem_columns(v.config);
  return evidence;
}

}  // namespace gemmtune
