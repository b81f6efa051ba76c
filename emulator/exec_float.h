// What the files of floating-point instructions share: flags, rounding, operands; and the integer halves of
// shared opcodes.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "emulator/exec.h"
#include "emulator/numeric.h"

namespace gemmtune::emulator {

void decode_integer_add(Decode&);
void decode_integer_sub(Decode&);
void decode_integer_mul(Decode&);
void decode_integer_mad(Decode&);
void decode_integer_div(Decode&);
void decode_integer_min(Decode&);
void decode_integer_max(Decode&);
void decode_integer_abs(Decode&);
void decode_integer_neg(Decode&);

}  // namespace gemmtune::emulator

namespace gemmtune::emulator::floating {

// Instr::mod of floating instructions: [0] flags, [1] rounding, [2] which function (for the approximations).
constexpr uint32_t kFtz = 1, kSat = 2, kNan = 4, kRelu = 8, kXorsign = 16;

inline float flush(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
/// The same for a result: `exact()` before rounding (or rounded to odd in f64).
template <class F>
float flush_result(float v, uint32_t rounding, F exact) {
  bool tiny = std::fabs(v) == std::numeric_limits<float>::min() &&
              is_tiny(exact(), ScalarType::f32, static_cast<Rounding>(rounding));
  return tiny ? std::copysign(0.0f, v) : flush(v);
}

template <class T>
T canonical(T v) {
  return v;
}
template <>
inline float canonical(float v) {
  return std::isnan(v) ? std::bit_cast<float>(0x7fffffffu) : v;
}

/// NaN and both zeros give +0 (H200).
template <class T>
T saturate(T v) {
  return v > 0 ? std::min(v, T{1}) : T{0};
}

/// What operations make of a NaN (H200): the f32 one; in f64 the operand made quiet, its sign kept even by
/// neg and abs.
inline float quiet_nan(float) { return std::bit_cast<float>(0x7fffffffu); }
inline double quiet_nan(double v) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(v) | 0x0008000000000000u);
}
/// A result `v` and the operands in the order in which a NaN among them prevails (H200: the second one, then
/// the third, then the first; in divisions the first).
template <class T, class... Operands>
T with_nan_of(T v, Operands... operands) {
  if (!std::isnan(v)) return v;
  if constexpr (std::is_same_v<T, float>) {
    return quiet_nan(v);
  } else {
    for (T operand : {operands...})
      if (std::isnan(operand)) return quiet_nan(operand);
    return std::bit_cast<double>(0xfff8000000000000u);
  }
}

/// Directed rounding is rare: the host's mode is switched for one operation.
template <class T, class F>
__attribute__((noinline)) T rounded(uint32_t mode, F f) {
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  int before = std::fegetround();
  std::fesetround(kModes[mode]);
  volatile T result = f();
  std::fesetround(before);
  return result;
}

inline void operands(Decode& d, ScalarType t, size_t n) {
  d.need_count(n + 1, n + 1);
  d.dst(d.parsed(0), std::max(4, size_bytes(t)), false);
  for (size_t i = 1; i <= n; ++i) d.src_as(d.parsed(i), t);
}

enum class Kind { integer, f32, f64, half, pair };
inline Kind kind_of(Decode& d) {
  if (d.has("f16") || d.has("f16x2") || d.has("bf16") || d.has("bf16x2")) return Kind::half;
  if (d.has("f32x2")) return Kind::pair;
  if (d.has("f32")) return Kind::f32;
  if (d.has("f64")) return Kind::f64;
  return Kind::integer;
}

inline void flags_of(Decode& d) {
  if (d.take("ftz")) d.out.mod[0] |= kFtz;
  if (d.take("sat")) d.out.mod[0] |= kSat;
  int rounding = d.take_one_of({"rn", "rz", "rm", "rp"});
  d.out.mod[1] = rounding < 0 ? 0 : static_cast<uint32_t>(rounding);
}

/// The smaller or larger of two 16-bit values: -0 below +0, a NaN only if both are (or kNan says so).
uint16_t half_compare(bool max, uint16_t a, uint16_t b, ScalarType type, uint32_t flags);

/// 16-bit types. `op`: 0 add, 1 sub, 2 mul, 3 fma, 4 min, 5 max, 6 neg, 7 abs.
void decode_half(Decode& d, int op, size_t n);

}  // namespace gemmtune::emulator::floating

namespace gemmtune::emulator {

void register_float_functions(OpcodeTable&);

}  // namespace gemmtune::emulator
