// One operand's part of a stage in shared memory: its TMA boxes and its matrix descriptors, from one geometry, so
// that copy and MMA cannot disagree.
//
// The tile is cut into *chunks*, each one TMA box wide. A chunk's row is one swizzle span (16 bytes without swizzle):
//   K-major:   span bytes along K  x kRows rows;   chunks follow each other along K
//   MN-major:  span bytes along MN x kDepth rows;  chunks follow each other along MN
// Address formulas of the descriptors: ptx-facts 2.2 (PTX ISA "matrix descriptor", "canonical layouts").
#pragma once
#include "device/async_copy.cuh"
#include "device/swizzle.cuh"
#include "device/tma.cuh"

constexpr int kMmaDepth = 16;  // K of one f16/bf16 MMA instruction, wgmma and tcgen05 alike

/// kRows: elements along M (A) or N (B) held by this CTA. kDepth: elements along K. kSpan: 16, 32, 64 or 128 bytes.
template <int kRows, int kDepth, bool kMnMajor, int kSpan>
struct OperandTile {
  static constexpr int kElement = 2;
  static constexpr int kBytes = kRows * kDepth * kElement;
  // Every tile starts on a 1024-byte boundary: the longest swizzle pattern (128B) then starts in phase.
  static constexpr int kStride = round_up(kBytes, 1024);
  static constexpr int kChunkElements = kSpan / kElement;
  static constexpr int kChunkRows = kMnMajor ? kDepth : kRows;
  static constexpr int kChunkBytes = kChunkRows * kSpan;
  static constexpr int kChunks = (kMnMajor ? kRows : kDepth) / kChunkElements;
  static_assert(kChunks * kChunkBytes == kBytes, "the span divides the contiguous dimension");

  // Byte strides of the descriptor. Their meaning depends on layout and swizzle.
  static constexpr bool kSwizzled = kSpan > 16;
  static constexpr int kLbo = kMnMajor ? (kSwizzled ? kChunkBytes : 128) : (kSwizzled ? 16 : kChunkBytes);
  static constexpr int kSbo = kMnMajor && !kSwizzled ? kChunkBytes : 8 * kSpan;

  /// Byte offset of the operand rows that start at `row` (a multiple of 8; MN-major: of a chunk).
  HOST_DEVICE static constexpr int row_offset(int row) { return kMnMajor ? row / kChunkElements * kChunkBytes : row * kSpan; }

  /// Byte offset of the `step`-th MMA's 16 elements of K. Inside a span plain addition is right: the unit XORs the
  /// final address, and no carry reaches the row bits.
  HOST_DEVICE static constexpr int k_offset(int step) {
    if (kMnMajor) return step * kMmaDepth * kSpan;
    int bytes = step * kMmaDepth * kElement;
    return bytes / kSpan * kChunkBytes + bytes % kSpan;
  }

  /// Calls box(chunk's byte offset, inner, outer coordinate) for each box of the `slice`-th of kSlices equal parts.
  template <int kSlices, class Box>
  DEVICE static void for_each_box(int mn, int k, u32 slice, const Box& box) {
    if constexpr (kMnMajor) {
      constexpr int kSlice = kChunks / kSlices;
#pragma unroll
      for (int i = 0; i < kSlice; ++i) {
        int chunk = static_cast<int>(slice) * kSlice + i;
        box(chunk * kChunkBytes, mn + chunk * kChunkElements, k);
      }
    } else {
      constexpr int kSliceRows = kRows / kSlices;
      int row = static_cast<int>(slice) * kSliceRows;
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk)
        box(chunk * kChunkBytes + row * kSpan, k + chunk * kChunkElements, mn + row);
    }
  }

  /// Copies one slice of the tile: where several CTAs need it (kMulticast), each fetches one and sends it to all of them.
  template <int kCtaGroup, int kSlices, bool kMulticast = (kSlices > 1)>
  DEVICE static void load(u32 destination, const TensorMap* map, int mn, int k, u32 slice, const Delivery& by) {
    for_each_box<kSlices>(mn, k, slice, [&](int offset, int c0, int c1) {
      tma_load_2d<kCtaGroup, kMulticast>(destination + offset, map, c0, c1, by);
    });
  }

  template <int kSlices>
  DEVICE static void prefetch(const TensorMap* map, int mn, int k, u32 slice, u64 policy) {
    for_each_box<kSlices>(mn, k, slice, [&](int, int c0, int c1) { tma_prefetch_2d(map, c0, c1, policy); });
  }

  /// The same tile by cp.async from all kThreads threads: as the TMA boxes would lie, swizzle included. Sizes are the
  /// operand's; what lies outside is zero.
  template <int kThreads>
  DEVICE static void copy(u32 destination, const void* operand, int mn, int k, int size_mn, int size_k) {
    constexpr int kUnitsPerRow = kSpan / 16, kUnits = kBytes / 16;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kUnits; i += kThreads) {
      int unit = i % kUnitsPerRow, row = i / kUnitsPerRow % kChunkRows, chunk = i / kUnitsPerRow / kChunkRows;
      int along = chunk * kChunkElements + unit * (16 / kElement);
      int at_mn = mn + (kMnMajor ? along : row), at_k = k + (kMnMajor ? row : along);
      // The contiguous dimension is a multiple of 16 bytes: a unit is inside as a whole or not at all.
      bool inside = at_mn < size_mn && at_k < size_k;
      i64 element = kMnMajor ? static_cast<i64>(at_k) * size_mn + at_mn : static_cast<i64>(at_mn) * size_k + at_k;
      cp_async_16(destination + chunk * kChunkBytes + swizzled_offset<kSpan>(row, unit),
                  static_cast<const unsigned char*>(operand) + (inside ? element * kElement : 0), inside);
    }
  }
};

/// Start, leading and stride byte offsets in units of 16 bytes; bits as in ptx-facts 2.1.
DEVICE u64 descriptor_bits(u32 address, u32 lbo, u32 sbo) {
  return static_cast<u64>((address & 0x3ffff) >> 4) | static_cast<u64>(lbo >> 4) << 16 |
         static_cast<u64>(sbo >> 4) << 32;
}
