// Tensor maps: the 128 opaque bytes that cuTensorMapEncodeTiled fills, with an encoding of our own.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace gemmtune::emulator {

/// Values are cuda.h's.
enum class TensorType : uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz,
  u4_align8,
  u4_align16,
  u6_align16
};
enum class TensorInterleave : uint8_t { none, b16, b32 };
enum class TensorSwizzle : uint8_t { none, b32, b64, b128, b128_atom32, b128_atom32_flip8, b128_atom64 };

/// Arguments of cuTensorMapEncodeTiled, index 0 innermost.
struct TensorMap {
  TensorType type = TensorType::bf16;
  uint32_t rank = 2;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 4> strides_bytes{};  ///< of dimensions 1 .. rank-1
  std::array<uint32_t, 5> box{};
  std::array<uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  TensorInterleave interleave = TensorInterleave::none;
  TensorSwizzle swizzle = TensorSwizzle::none;
  uint8_t l2_promotion = 0;
  bool nan_fill = false;
};

using TensorMapBytes = std::array<uint8_t, 128>;

int element_bits(TensorType type);
/// Empty when cuTensorMapEncodeTiled would accept it, else the field and the rule (ptx-facts 3.3).
/// `blackwell` admits the types and swizzles that sm_90 refuses.
std::string check_tensor_map(const TensorMap& map, bool blackwell);
/// Throws std::invalid_argument with check_tensor_map's text.
TensorMapBytes encode_tensor_map(const TensorMap& map, bool blackwell = true);
/// Empty error text if these bytes came from encode_tensor_map.
std::string decode_tensor_map(const uint8_t* bytes, TensorMap& out);

/// XOR of shared-memory byte addresses (ptx-facts 3.1).
uint32_t swizzle_address(TensorSwizzle swizzle, uint32_t address);
/// Bytes of a row under this swizzle; 0 for none.
int swizzle_span(TensorSwizzle swizzle);

}  // namespace gemmtune::emulator
