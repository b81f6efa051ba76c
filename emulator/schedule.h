// When asynchronous work completes and which warp runs next.
#pragma once

#include <cstdint>
#include <string_view>

namespace gemmtune::emulator {

/// `eager`: at issue. `lazy`: only when no warp can go on. `random`: warps and operations in an order drawn
/// from the seed.
enum class SchedulePolicy : uint8_t { eager, lazy, random };

struct Schedule {
  SchedulePolicy policy = SchedulePolicy::eager;
  uint64_t seed = 0;
};

std::string_view name(SchedulePolicy policy);

}  // namespace gemmtune::emulator
