#include "emulator/numeric.h"

#include <bit>
#include <cmath>
#include <limits>

namespace gemmtune::emulator {
namespace {

constexpr FloatFormat kF16{5, 10, 15, true, true}, kBf16{8, 7, 127, true, true},
    kTf32{8, 10, 127, true, true}, kF32{8, 23, 127, true, true}, kE4m3{4, 3, 7, false, true},
    kE5m2{5, 2, 15, true, true}, kE2m3{2, 3, 1, false, false}, kE3m2{3, 2, 3, false, false},
    kE2m1{2, 1, 1, false, false};

uint32_t largest(const FloatFormat& f) {
  uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.has_infinity) return (((1u << f.exponent_bits) - 1) << f.mantissa_bits) - 1;
  return f.has_nan ? all - 1 : all;
}

uint32_t canonical_nan(ScalarType type, const FloatFormat& f) {
  // Canonical NaNs of cvt (PTX ISA 9.7.9): 0x7fff, and 0x7fffffff for f32.
  if (type == ScalarType::f16 || type == ScalarType::bf16) return 0x7fff;
  return (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
}

}  // namespace

const FloatFormat& float_format(ScalarType type) {
  switch (type) {
    case ScalarType::f16:
      return kF16;
    case ScalarType::bf16:
      return kBf16;
    case ScalarType::tf32:
      return kTf32;
    case ScalarType::e4m3:
      return kE4m3;
    case ScalarType::e5m2:
      return kE5m2;
    case ScalarType::e2m3:
      return kE2m3;
    case ScalarType::e3m2:
      return kE3m2;
    case ScalarType::e2m1:
      return kE2m1;
    default:
      return kF32;
  }
}

uint32_t encode_float(double value, ScalarType type, Rounding rounding, bool satfinite) {
  const FloatFormat& f = float_format(type);
  uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  // tf32 lives in the upper 19 bits of a 32-bit register.
  int shift_out = type == ScalarType::tf32 ? 13 : 0;
  if (std::isnan(value)) {
    if (!f.has_nan) return largest(f);
    return canonical_nan(type, f) << shift_out;
  }
  bool negative = std::signbit(value);
  uint32_t sign = negative ? sign_bit : 0;
  double magnitude = std::fabs(value);
  auto overflow = [&]() -> uint32_t {
    bool toward_finite = rounding == Rounding::zero || (rounding == Rounding::down && !negative) ||
                         (rounding == Rounding::up && negative);
    uint32_t bits;
    if (satfinite || (toward_finite && !std::isinf(value)))
      bits = largest(f);
    else if (f.has_infinity)
      bits = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    else
      bits = f.has_nan ? canonical_nan(type, f) : largest(f);
    return (sign | bits) << shift_out;
  };
  if (std::isinf(value)) return overflow();
  if (magnitude == 0) return sign << shift_out;
  int exponent = std::ilogb(magnitude);
  int least = 1 - f.bias;
  int quantum = std::max(exponent, least) - f.mantissa_bits;
  double scaled = std::ldexp(magnitude, -quantum);  // exact; below 2^(mantissa_bits + 1)
  double whole = std::floor(scaled), rest = scaled - whole;
  uint64_t units = static_cast<uint64_t>(whole);
  bool up = false;
  switch (rounding) {
    case Rounding::nearest_even:
      up = rest > 0.5 || (rest == 0.5 && (units & 1));
      break;
    case Rounding::nearest_away:
      up = rest >= 0.5;
      break;
    case Rounding::zero:
      break;
    case Rounding::down:
      up = negative && rest > 0;
      break;
    case Rounding::up:
      up = !negative && rest > 0;
      break;
  }
  units += up;
  // A carry into the exponent field adds correctly: subnormal to normal, and 1.11.. to the next binade.
  uint64_t biased = static_cast<uint64_t>(std::max(exponent, least) - least);
  uint64_t bits = units + (biased << f.mantissa_bits);
  if (bits > largest(f)) return overflow();
  return (sign | static_cast<uint32_t>(bits)) << shift_out;
}

double decode_float(uint32_t bits, ScalarType type) {
  const FloatFormat& f = float_format(type);
  if (type == ScalarType::tf32) bits >>= 13;
  uint32_t exponent = bits >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  bool negative = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
  double value;
  bool top = exponent == (1u << f.exponent_bits) - 1;
  if (top && f.has_infinity) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (top && f.has_nan && mantissa == (1u << f.mantissa_bits) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  } else {
    value =
        std::ldexp(mantissa + (1u << f.mantissa_bits), static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  }
  return negative ? -value : value;
}

bool is_tiny(double exact, ScalarType type, Rounding rounding) {
  const FloatFormat& f = float_format(type);
  double least = std::ldexp(1.0, 1 - f.bias), magnitude = std::fabs(exact);
  double step = std::ldexp(least, -f.mantissa_bits - 1);  // between the numbers just below `least`
  if (rounding == (std::signbit(exact) ? Rounding::down : Rounding::up)) return magnitude <= least - step;
  // The tie below `least` goes to `least`, whose mantissa is even.
  return magnitude < (rounding == Rounding::nearest_even ? least - step / 2 : least);
}

double add_round_to_odd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  double bb = sum - a, error = (a - (sum - bb)) + (b - bb);  // Knuth's two-sum: exact
  if (error == 0) return sum;
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (bits & 1) return sum;
  // The exact value lies between sum and a neighbour; the odd one of the two is the answer.
  bool away = (error > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

}  // namespace gemmtune::emulator
