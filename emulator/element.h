// Values of any element type in raw memory.
#pragma once

#include <cstdint>

#include "emulator/scalar_type.h"

namespace gemmtune::emulator {

/// Types that a buffer of a launch file may have: integers and floating types of whole bytes.
bool is_element(ScalarType type);
/// Rounded to nearest even; integers are clamped to the type's range.
void store_element(ScalarType type, double value, uint8_t* to);
double load_element(ScalarType type, const uint8_t* from);

}  // namespace gemmtune::emulator
