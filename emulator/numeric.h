// Rounding to and from the small floating types.
#pragma once

#include <cstdint>

#include "emulator/scalar_type.h"

namespace gemmtune::emulator {

/// A binary floating format with `mantissa` stored bits and subnormals.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;  ///< e4m3 has none: S.1111.111 is NaN, S.1111.110 the largest value
  bool has_nan;       ///< e2m3, e3m2, e2m1 have neither
};
const FloatFormat& float_format(ScalarType type);

enum class Rounding : uint8_t { nearest_even, zero, down, up, nearest_away };

/// Exact value to the format. Overflow gives infinity, or the largest value with `satfinite` (and in formats
/// without infinity when it is given; else NaN). NaN gives the type's canonical NaN.
uint32_t encode_float(double value, ScalarType type, Rounding rounding = Rounding::nearest_even,
                      bool satfinite = false);
double decode_float(uint32_t bits, ScalarType type);

/// Whether `exact` stays below the least normal number when it is rounded to the type's precision with any
/// exponent. Then .ftz makes a zero of it, even where rounding to the type gives the least normal number
/// (H200).
bool is_tiny(double exact, ScalarType type, Rounding rounding = Rounding::nearest_even);

/// a + b rounded to odd: a later rounding to fewer bits is then the only one.
double add_round_to_odd(double a, double b);

}  // namespace gemmtune::emulator
