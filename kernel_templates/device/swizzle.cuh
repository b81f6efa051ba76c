// The XOR of shared-memory addresses that TMA and the tensor cores apply, for code that writes such tiles itself.
#pragma once
#include "device/cluster.cuh"

/// Byte offset of 16-byte unit `unit` of row `row` in a tile whose rows are one swizzle span long and whose start is
/// aligned to eight of them (ptx-facts 3.1). 16: no swizzle.
template <int kSpan>
DEVICE u32 swizzled_offset(u32 row, u32 unit) {
  static_assert(kSpan == 128 || kSpan == 64 || kSpan == 32 || kSpan == 16, "a swizzle span");
  if constexpr (kSpan == 128) return row * 128 + ((unit ^ (row & 7)) << 4);
  if constexpr (kSpan == 64) return row * 64 + ((unit ^ (row >> 1 & 3)) << 4);
  if constexpr (kSpan == 32) return row * 32 + ((unit ^ (row >> 2 & 1)) << 4);
  return row * 16;
}
