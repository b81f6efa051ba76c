// What is known of every 16 bytes of shared memory beside their content: who wrote last and through which
// proxy.
#pragma once

#include <cstdint>

namespace gemmtune::emulator {

struct Shadow {
  uint32_t async_writer = 0;  ///< operation id of the last asynchronous write, 0: none
  uint32_t async_reader = 0;  ///< operation id of the last asynchronous read
  uint32_t generic_tick = 0;  ///< of the last generic write, 0: none since the last asynchronous one
  uint16_t generic_thread = 0;
  uint16_t generic_rank = 0;  ///< CTA of that thread
  int32_t generic_line = 0;
};

constexpr int kShadowShift = 4;

}  // namespace gemmtune::emulator
