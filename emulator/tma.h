// Boxes of tensors: where each piece of a TMA copy lies in global and in shared memory (ptx-facts 3).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/tensor_map.h"

namespace gemmtune::emulator {

struct Warp;

/// A box at coordinates. Rows are its innermost dimension; `rows` counts all others.
struct TensorBox {
  TensorMap map;
  std::array<int32_t, 5> at{};
  uint32_t rows = 1;
  uint32_t row_bytes = 0;      ///< of payload in shared memory
  uint32_t row_pitch = 0;      ///< in shared memory; the swizzle span where a row is narrower
  uint32_t smem_bytes = 0;     ///< rows x pitch
  uint32_t payload_bytes = 0;  ///< what complete_tx counts: always the full box (measured)
};

/// Throws Fault where hardware traps: c0 not a multiple of 16 bytes, negative coordinates of a store.
TensorBox make_box(const TensorMap& map, const std::array<int32_t, 5>& at, bool store);

/// Global address of a row's first element, and the range of elements of the row inside the tensor (may be
/// empty).
struct BoxRow {
  uint64_t address;
  uint32_t first, count;
};
BoxRow box_row(const TensorBox& box, uint32_t row);

/// Reads the box from global memory as it will stand in shared memory, without swizzle: rows x row_bytes.
void read_box(Warp& w, const TensorBox& box, std::vector<uint8_t>& out);
/// Copies rows into shared memory at `offset` (absolute, for the XOR) or out of it.
void scatter_box(const TensorBox& box, const uint8_t* rows, uint8_t* smem, uint32_t offset);
void gather_box(const TensorBox& box, uint8_t* rows, const uint8_t* smem, uint32_t offset);
/// Writes elements inside the tensor. `reduce`: -1 for a plain store, else an operation of atomic_value.
void write_box(Warp& w, const TensorBox& box, const uint8_t* rows, int reduce);

}  // namespace gemmtune::emulator
