#include "emulator/tmem.h"

namespace gemmtune::emulator {

bool Tmem::allocated(uint32_t column, uint32_t columns) const {
  for (const TmemAllocation& a : allocations)
    if (column >= a.column && column + columns <= a.column + a.columns) return true;
  return false;
}

int Tmem::allocate(uint32_t columns, bool from_top, int line, bool pair) {
  if (!words) {
    words = std::make_unique<uint32_t[]>(kTmemLanes * kTmemColumns);
    cells.resize(4 * kTmemColumns);
    reads.resize(4 * kTmemColumns);
    stores.resize(4 * kTmemColumns);
  }
  for (uint32_t i = 0; i + columns <= kTmemColumns; i += columns) {
    uint32_t column = from_top ? kTmemColumns - columns - i : i;
    bool free = true;
    for (const TmemAllocation& a : allocations)
      if (column < a.column + a.columns && a.column < column + columns) free = false;
    if (!free) continue;
    allocations.push_back({column, columns, line, pair});
    for (uint32_t quarter = 0; quarter < 4; ++quarter)
      for (uint32_t c = column; c < column + columns; ++c) {
        cell(quarter, c) = {};
        read(quarter, c) = stored(quarter, c) = {};
      }
    // Content after alloc is undefined (ptx-facts 4.1): NaN, so that its use shows.
    for (uint32_t lane = 0; lane < kTmemLanes; ++lane)
      for (uint32_t c = column; c < column + columns; ++c) *word(lane, c) = 0xffffffff;
    return static_cast<int>(column);
  }
  return -1;
}

}  // namespace gemmtune::emulator
