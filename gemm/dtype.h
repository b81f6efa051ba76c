// Element types of operands and results.
#pragma once

#include <cstdint>
#include <string_view>

namespace gemmtune {

/// Element type. Inputs are f16 or bf16; results may also be f32. Accumulation is always f32.
enum class DType { f16, bf16, f32 };

std::string_view name(DType type);

/// Throws UsageError with the accepted names.
DType parse_dtype(std::string_view text);

constexpr int size_bytes(DType type) { return type == DType::f32 ? 4 : 2; }

/// Largest integer up to which every integer is exact: 2048 (f16), 256 (bf16), 2^24 (f32).
constexpr int64_t exact_integer_limit(DType type) {
  return type == DType::f16 ? 2048 : type == DType::bf16 ? 256 : int64_t{1} << 24;
}

/// Which dimension of an operand is contiguous in memory: K, or the other one (M of A, N of B).
enum class Major { k, mn };

/// `f32` bits rounded to nearest even; the inverse conversions are exact.
uint16_t to_f16_bits(float value);
uint16_t to_bf16_bits(float value);
float from_f16_bits(uint16_t bits);
float from_bf16_bits(uint16_t bits);

}  // namespace gemmtune
