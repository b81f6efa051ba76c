// PTX scalar types (PTX ISA 5.2) as they appear behind the dot.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gemmtune::emulator {

enum class ScalarType : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f32x2,
  f64,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  e2m3,
  e3m2,
  e2m1,
};

/// Without the dot: "f32". Empty optional if it is no type.
std::optional<ScalarType> parse_scalar_type(std::string_view word);
std::string_view name(ScalarType type);
/// Bytes in memory; 0 for pred.
int size_bytes(ScalarType type);
bool is_signed(ScalarType type);
bool is_integer(ScalarType type);  ///< u* and s*, not b*

}  // namespace gemmtune::emulator
