#include "emulator/tensor_map.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

namespace gemmtune::emulator {
namespace {

constexpr uint64_t kMagic = 0x67656d6d746d6170;  // "gemmtmap"
constexpr uint64_t kMaxBoxBytes = 233472;        // 228 KiB, ptx-facts 3.3 (measured)

// The first word identifies an encoding of ours; the rest are the fields, packed so that tensormap.replace
// and comparisons of whole maps work on plain bytes.
struct Packed {
  uint64_t magic;
  uint64_t address;
  uint32_t dims_less_one[5];
  uint16_t box[5];
  uint8_t element_strides[5];
  uint8_t type, rank, interleave, swizzle, l2_promotion, nan_fill;
  uint8_t unused[7];
  uint64_t strides_bytes[4];
  uint8_t tail[128 - 8 - 8 - 20 - 10 - 5 - 6 - 7 - 32];
};
static_assert(sizeof(Packed) == 128);

bool is_align16(TensorType t) { return t == TensorType::u4_align16 || t == TensorType::u6_align16; }
bool is_floating(TensorType t) {
  switch (t) {
    case TensorType::f16:
    case TensorType::f32:
    case TensorType::f64:
    case TensorType::bf16:
    case TensorType::f32_ftz:
    case TensorType::tf32:
    case TensorType::tf32_ftz:
      return true;
    default:
      return false;
  }
}

}  // namespace

int element_bits(TensorType type) {
  switch (type) {
    case TensorType::u8:
      return 8;
    case TensorType::u16:
    case TensorType::f16:
    case TensorType::bf16:
      return 16;
    case TensorType::u32:
    case TensorType::s32:
    case TensorType::f32:
    case TensorType::f32_ftz:
    case TensorType::tf32:
    case TensorType::tf32_ftz:
      return 32;
    case TensorType::u64:
    case TensorType::s64:
    case TensorType::f64:
      return 64;
    case TensorType::u4_align8:
    case TensorType::u4_align16:
      return 4;
    case TensorType::u6_align16:
      return 6;
  }
  return 0;
}

int swizzle_span(TensorSwizzle swizzle) {
  switch (swizzle) {
    case TensorSwizzle::none:
      return 0;
    case TensorSwizzle::b32:
      return 32;
    case TensorSwizzle::b64:
      return 64;
    default:
      return 128;
  }
}

uint32_t swizzle_address(TensorSwizzle swizzle, uint32_t a) {
  switch (swizzle) {
    case TensorSwizzle::none:
      return a;
    case TensorSwizzle::b32:
      return a ^ ((a >> 3) & 0x10);
    case TensorSwizzle::b64:
      return a ^ ((a >> 3) & 0x30);
    case TensorSwizzle::b128:
      return a ^ ((a >> 3) & 0x70);
    case TensorSwizzle::b128_atom32:
      return a ^ ((a >> 2) & 0x60);
    case TensorSwizzle::b128_atom32_flip8:
      return a ^ ((a >> 2) & 0x60) ^ ((a >> 4) & 0x8);
    case TensorSwizzle::b128_atom64:
      return a ^ ((a >> 1) & 0x40);
  }
  return a;
}

std::string check_tensor_map(const TensorMap& m, bool blackwell) {
  bool interleaved = m.interleave != TensorInterleave::none;
  if (m.rank < 1 || m.rank > 5) return fmt::format("rank {} is not 1 to 5", m.rank);
  if (interleaved && m.rank < 3)
    return fmt::format("rank {} is less than 3 with an interleaved layout", m.rank);
  if (!blackwell && m.type >= TensorType::u4_align8) return "element type needs sm_100";
  if (!blackwell && m.swizzle >= TensorSwizzle::b128_atom32) return "swizzle mode needs sm_100";
  bool wide = m.interleave == TensorInterleave::b32 || is_align16(m.type);
  uint64_t unit = wide ? 32 : 16;
  if (m.address % unit) return fmt::format("globalAddress {:#x} is not a multiple of {}", m.address, unit);
  int bits = element_bits(m.type);
  for (uint32_t i = 0; i < m.rank; ++i) {
    if (m.dims[i] < 1 || m.dims[i] > (1ull << 32))
      return fmt::format("globalDim[{}] = {} is not 1 to 2^32", i, m.dims[i]);
    if (m.box[i] < 1 || m.box[i] > 256) return fmt::format("boxDim[{}] = {} is not 1 to 256", i, m.box[i]);
    if (m.element_strides[i] < 1 || m.element_strides[i] > 8)
      return fmt::format("elementStrides[{}] = {} is not 1 to 8", i, m.element_strides[i]);
    if (i > 0) {
      uint64_t stride = m.strides_bytes[i - 1];
      if (stride % unit)
        return fmt::format("globalStrides[{}] = {} is not a multiple of {}", i - 1, stride, unit);
      if (stride >= (1ull << 40))
        return fmt::format("globalStrides[{}] = {} is not below 2^40", i - 1, stride);
    }
  }
  if (is_align16(m.type) && m.dims[0] % 128)
    return fmt::format("globalDim[0] = {} is not a multiple of 128 for this type", m.dims[0]);
  if (m.type == TensorType::u4_align8 && m.dims[0] % 2)
    return fmt::format("globalDim[0] = {} is odd", m.dims[0]);
  if (is_align16(m.type) && m.box[0] != 128)
    return fmt::format("boxDim[0] = {} is not 128 for this type", m.box[0]);
  uint64_t inner_bytes = uint64_t{m.box[0]} * bits / 8;
  if (!is_align16(m.type) && (uint64_t{m.box[0]} * bits) % 128)
    return fmt::format("boxDim[0] x element size = {} bytes is not a multiple of 16", inner_bytes);
  if (!interleaved && m.swizzle != TensorSwizzle::none && !is_align16(m.type) &&
      inner_bytes > static_cast<uint64_t>(swizzle_span(m.swizzle)))
    return fmt::format("boxDim[0] x element size = {} bytes exceeds the swizzle span of {}", inner_bytes,
                       swizzle_span(m.swizzle));
  if (m.interleave == TensorInterleave::b32 && m.swizzle != TensorSwizzle::b32 &&
      m.swizzle != TensorSwizzle::b128)
    return "interleave 32B needs swizzle 32B";
  if (is_align16(m.type) && m.swizzle != TensorSwizzle::none && m.swizzle != TensorSwizzle::b128 &&
      m.swizzle != TensorSwizzle::b128_atom32)
    return "swizzle mode is not allowed for this type";
  uint64_t box_bits = static_cast<uint64_t>(bits) * m.box[0];
  for (uint32_t i = 1; i < m.rank; ++i)
    box_bits *= (m.box[i] + m.element_strides[i] - 1) / m.element_strides[i];
  if (box_bits / 8 > kMaxBoxBytes)
    return fmt::format("box of {} bytes is larger than {}", box_bits / 8, kMaxBoxBytes);
  if (m.nan_fill && !is_floating(m.type)) return "oobFill NaN needs a floating element type";
  return {};
}

TensorMapBytes encode_tensor_map(const TensorMap& m, bool blackwell) {
  if (std::string why = check_tensor_map(m, blackwell); !why.empty()) throw std::invalid_argument(why);
  Packed p{};
  p.magic = kMagic;
  p.address = m.address;
  for (uint32_t i = 0; i < m.rank; ++i) {
    p.dims_less_one[i] = static_cast<uint32_t>(m.dims[i] - 1);
    p.box[i] = static_cast<uint16_t>(m.box[i]);
    p.element_strides[i] = static_cast<uint8_t>(m.element_strides[i]);
    if (i > 0) p.strides_bytes[i - 1] = m.strides_bytes[i - 1];
  }
  p.type = static_cast<uint8_t>(m.type);
  p.rank = static_cast<uint8_t>(m.rank);
  p.interleave = static_cast<uint8_t>(m.interleave);
  p.swizzle = static_cast<uint8_t>(m.swizzle);
  p.l2_promotion = m.l2_promotion;
  p.nan_fill = m.nan_fill;
  TensorMapBytes out;
  std::memcpy(out.data(), &p, 128);
  return out;
}

std::string decode_tensor_map(const uint8_t* bytes, TensorMap& m) {
  Packed p;
  std::memcpy(&p, bytes, 128);
  if (p.magic != kMagic) return "these 128 bytes are no encoded tensor map";
  if (p.type > 15 || p.interleave > 2 || p.swizzle > 6 || p.rank < 1 || p.rank > 5)
    return "a field is out of range";
  m = TensorMap{};
  m.address = p.address;
  for (uint32_t i = 0; i < p.rank; ++i) {
    m.dims[i] = uint64_t{p.dims_less_one[i]} + 1;
    m.box[i] = p.box[i];
    m.element_strides[i] = p.element_strides[i];
    if (i > 0) m.strides_bytes[i - 1] = p.strides_bytes[i - 1];
  }
  m.type = static_cast<TensorType>(p.type);
  m.rank = p.rank;
  m.interleave = static_cast<TensorInterleave>(p.interleave);
  m.swizzle = static_cast<TensorSwizzle>(p.swizzle);
  m.l2_promotion = p.l2_promotion;
  m.nan_fill = p.nan_fill;
  return check_tensor_map(m, true);
}

}  // namespace gemmtune::emulator
