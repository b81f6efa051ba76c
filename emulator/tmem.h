// Tensor memory of one SM: 128 lanes x 512 columns of 32 bits (ptx-facts section 4).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/clock.h"

namespace gemmtune::emulator {

constexpr int kTmemLanes = 128, kTmemColumns = 512;
constexpr int kTmemLaneShift = 16;

struct TmemAllocation {
  uint32_t column, columns;
  int line;
  bool pair;
};

struct Tmem {
  std::unique_ptr<uint32_t[]> words;  ///< lane-major; made at the first allocation
  std::vector<TmemAllocation> allocations;
  bool permit_relinquished = false;
  uint32_t last_columns = kTmemColumns;         ///< sizes must not grow over successive allocations
  uint64_t alloc_count = 0, dealloc_count = 0;  ///< arrivals of cta_group::2, which meets its peer
  std::vector<int> granted;  ///< columns that the peer's tcgen05.alloc.cta_group::2 took for this CTA: a pair
                             ///< allocates at once
  uint64_t version = 0;      ///< bumped by every (de)allocation
  /// Per 32-lane quarter and column.
  struct Cell {
    uint32_t writer = 0;         ///< operation id of the last mma or cp that wrote here
    uint32_t initialised = 0;    ///< lanes written since allocation
    uint32_t store_pending = 0;  ///< PTX line of a tcgen05.st without wait::st
    uint32_t loads_pending = 0;  ///< PTX line of a tcgen05.ld without wait::ld
    bool handed = false;         ///< `reads` or `stores` has something to check
  };
  /// The last wait::ld and wait::st of a column since an mma wrote it. Apart from the cells, which every mma
  /// walks through.
  struct Access {
    Moment moment;
    uint64_t tick = 0;
    int32_t line = 0;  ///< of the ld or st
  };
  std::vector<Access> reads, stores;
  std::vector<Cell> cells;  ///< [quarter * 512 + column]

  uint32_t* word(uint32_t lane, uint32_t column) { return words.get() + lane * kTmemColumns + column; }
  Cell& cell(uint32_t quarter, uint32_t column) { return cells[quarter * kTmemColumns + column]; }
  Access& read(uint32_t quarter, uint32_t column) { return reads[quarter * kTmemColumns + column]; }
  Access& stored(uint32_t quarter, uint32_t column) { return stores[quarter * kTmemColumns + column]; }
  bool allocated(uint32_t column, uint32_t columns) const;
  /// First column, or -1.
  int allocate(uint32_t columns, bool from_top, int line, bool pair);
};

}  // namespace gemmtune::emulator
