// What is known of every 16 bytes of shared memory beside their content: who wrote last and through which
// proxy, and who has read since.
#pragma once

#include <cstdint>

namespace gemmtune::emulator {

struct Shadow {
  uint32_t async_writer = 0;  ///< operation id of the last asynchronous write, 0: none
  uint32_t async_reader = 0;  ///< operation id of the last asynchronous read
  uint32_t generic_tick = 0;  ///< of the last generic write, 0: none since the last asynchronous one
  uint16_t generic_thread = 0;
  uint16_t generic_rank = 0;   ///< CTA of that thread
  uint32_t generic_event = 0;  ///< of that thread's warp (clock.h)
  int32_t generic_line = 0;
  uint16_t generic_bytes = 0;  ///< bit set: written by that warp at that event
  uint16_t reader_place = 0;   ///< warp that read last through the generic proxy; later reads are ordered
                               ///< behind earlier ones, or `reader_set` has them all
  uint32_t reader_event = 0;   ///< 0: nobody has read
  int32_t reader_line = 0;
  uint32_t reader_set = 0;  ///< in Cta::reader_sets, 0: one reader is enough
};

constexpr int kShadowShift = 4;

}  // namespace gemmtune::emulator
