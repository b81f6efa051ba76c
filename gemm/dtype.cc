#include "gemm/dtype.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "gemm/error.h"
#include "gemm/suggest.h"

namespace gemmtune {

std::string_view name(DType type) {
  switch (type) {
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
  }
  return "?";
}

DType parse_dtype(std::string_view text) {
  if (text == "f16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  if (text == "f32") return DType::f32;
  const std::vector<std::string> known = {"f16", "bf16", "f32"};
  throw UsageError(
      fmt::format("unknown element type '{}'{}: one of f16, bf16, f32", text, did_you_mean(text, known)));
}

uint16_t to_bf16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float from_bf16_bits(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t to_f16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7fff;   // NaN, the value that cvt.rn.f16.f32 gives
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to 2^16 or more: infinity
  if (magnitude < 0x38800000) {                       // below 2^-14: subnormal, steps of 2^-24
    // nearbyint rounds to nearest even, which is the mode that nothing here ever changes.
    float steps = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return sign | static_cast<uint16_t>(steps);
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

float from_f16_bits(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace gemmtune
