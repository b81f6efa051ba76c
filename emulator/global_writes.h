// Generic writes to global memory of the running kernel, for one question: may the async proxy (TMA, bulk
// copies) or the tensormap proxy read them? Needs a proxy fence, and an order.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/clock.h"

namespace gemmtune::emulator {

struct Cluster;
struct Warp;

/// When each lane of a warp last executed a proxy fence that covers global memory. Outlives the warp in
/// launches whose clusters communicate.
struct GlobalFences {
  std::array<uint32_t, 32> async{}, tensormap{};
};

struct GlobalWrite {
  const Cluster* cluster = nullptr;
  const GlobalFences* fences = nullptr;
  Moment moment;
  uint32_t tick = 0;
  int32_t line = 0;
  uint8_t lane = 0;
};

/// The last write to each 64 bytes.
class GlobalWrites {
 public:
  static constexpr int kShift = 6;
  void add(uint64_t address, uint32_t bytes, const GlobalWrite& write);
  template <class F>
  void visit(uint64_t address, uint64_t bytes, F body) const {
    bool near = false;
    for (const Range& r : ranges_) near |= address < r.high && address + bytes > r.low;
    for (uint64_t line = address >> kShift; near && line <= (address + bytes - 1) >> kShift; ++line)
      if (auto it = lines_.find(line); it != lines_.end()) body(it->second);
  }

 private:
  std::unordered_map<uint64_t, GlobalWrite> lines_;
  /// Written addresses by 16 MiB, so that reads of other tensors cost nothing.
  struct Range {
    uint64_t region, low, high;
  };
  std::vector<Range> ranges_;
  uint64_t last_line_ = UINT64_MAX;
  GlobalWrite* last_ = nullptr;
};

void note_global_write(Warp& w, int lane, uint64_t address, uint32_t bytes);
/// `what`: "TMA load", "bulk copy".
void check_async_global_read(Warp& w, int lane, uint64_t address, uint64_t bytes, const char* what);
/// Of the 128 bytes of a map in global memory.
void check_tensor_map_read(Warp& w, uint64_t address);

}  // namespace gemmtune::emulator
