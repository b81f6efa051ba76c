#include "search/roofline.h"

#include <algorithm>
#include <cmath>

namespace gemmtune {

Roofline roofline(const Problem& problem, const DeviceSpec& device) {
  return {flop(problem.shape) / device.f16_dense_tflops * 1e-6,
          compulsory_bytes(problem) / device.dram_tb_per_s * 1e-6};
}

double tile_cost(const TileShape& t, const Problem& problem, const DeviceSpec& device) {
  const Shape& s = problem.shape;
  auto tiles = [](int64_t size, int64_t tile) { return static_cast<double>((size + tile - 1) / tile); };
  double k_tiles = tiles(s.k, t.tile_k), parts = std::min<double>(t.split_k, k_tiles);
  double clusters =
      parts * tiles(s.m, int64_t{t.tile_m} * t.cluster_m) * tiles(s.n, int64_t{t.tile_n} * t.cluster_n);
  int cluster_size = t.cluster_m * t.cluster_n;
  k_tiles = std::ceil(k_tiles / parts);

  // CTAs that share an SM also share its tensor core.
  double ctas_per_sm = t.ctas_per_sm;
  // Clusters must fit into one graphics cluster: of 132 SMs those of 4 and 8 use 120 (ptx-facts 10.1).
  double usable = cluster_size > 2 ? 0.91 * device.sm_count : device.sm_count;
  double resident = std::max(1.0, std::floor(usable / cluster_size)) * ctas_per_sm;
  double waves = std::ceil(clusters / resident);
  double ctas_now = std::min(clusters / waves, resident) * cluster_size;
  double sharing = std::max(1.0, ctas_now / device.sm_count);

  double sm_tflops = device.f16_dense_tflops / device.sm_count;
  // Narrow tiles leave the tensor core waiting for operands from shared memory.
  // Clusters cost a little synchronisation, and leave SMs idle where their number is odd.
  double mma_efficiency = (cluster_size > 2 ? 0.90 : 0.92) * std::min(1.0, 0.35 + t.tile_n / 200.0) *
                          (t.tile_m < 128 ? 0.75 : 1.0);
  double mma_us = 2.0 * t.tile_m * t.tile_n * t.tile_k / (sm_tflops * mma_efficiency) * 1e-6 * sharing;
  // Bytes that this CTA's share of the cluster pulls out of L2 a k-step; about 9 TB/s over all SMs.
  double pulled = 2.0 * t.tile_k * (double(t.tile_m) / t.cluster_n + double(t.tile_n) / t.cluster_m);
  double l2_us = pulled * std::min<double>(ctas_now, device.sm_count * ctas_per_sm) / 9.0 * 1e-6;
  // Narrow rows write shared memory at a fraction of the rate: 3.85 TB/s unswizzled against 18.5 TB/s with
  // 128 bytes (seed 000_b7f4eb2624be9cfc.txt, section 6).
  double fill_us =
      double(t.stage_bytes) / (18.5e6 * std::sqrt(t.span_bytes / 128.0) / device.sm_count) * sharing;
  // One stage is being multiplied, the others are on their way.
  constexpr double kLoadLatencyUs = 0.9;
  double latency_us = t.stages > 1 ? kLoadLatencyUs / (t.stages - 1) / ctas_per_sm : kLoadLatencyUs + mma_us;
  double step_us = std::max({mma_us, l2_us, fill_us, latency_us});

  double prologue_us = 1.2;
  double epilogue_us = 1.0 + 2.0 * t.tile_m * t.tile_n / 65536.0;
  // Partial sums go to L2; the last part reads them all back.
  if (parts > 1) epilogue_us += 1.5 + (1 + parts) * t.tile_m * t.tile_n / 65536.0;
  double tile_us = k_tiles * step_us + (t.persistent ? 0.3 * epilogue_us : prologue_us + epilogue_us);
  double compute = waves * tile_us + (t.persistent ? prologue_us + epilogue_us : 0);
  double dram_us = compulsory_bytes(problem) / (0.9 * device.dram_tb_per_s) * 1e-6;
  return std::max(compute, dram_us) + 0.05 * std::min(compute, dram_us);
}

}  // namespace gemmtune
