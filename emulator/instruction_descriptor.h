// The 32-bit instruction descriptor of tcgen05.mma (ptx-facts 2.3, 2.5).
#pragma once

#include <cstdint>
#include <string>

#include "emulator/scalar_type.h"

namespace gemmtune::emulator {

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, i8 };

/// M and N are totals of the pair for cta_group::2.
struct InstructionDescriptor {
  ScalarType d = ScalarType::f32, a = ScalarType::f16, b = ScalarType::f16;
  bool a_mn_major = false, b_mn_major = false, negate_a = false, negate_b = false, saturate = false;
  uint32_t m = 0, n = 0, k = 0;
};

/// Throws Fault(instruction_descriptor) with the field named. `warning` gets what is legal by one source and
/// not by another.
InstructionDescriptor decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t cta_group,
                                                    bool a_in_tmem, std::string* warning);

}  // namespace gemmtune::emulator
