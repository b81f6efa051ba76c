#include "emulator/tma.h"

#include <fmt/format.h>

#include <cmath>

#include "emulator/exec.h"
#include "emulator/numeric.h"

namespace gemmtune::emulator {
namespace {

bool is_align16(TensorType t) { return t == TensorType::u4_align16 || t == TensorType::u6_align16; }

/// Bytes of sixteen elements in global memory for the types that are spread to 16 bytes in shared memory.
uint32_t packed_unit(TensorType t) { return t == TensorType::u4_align16 ? 8 : 12; }

uint32_t steps(const TensorMap& m, uint32_t i) {
  return (m.box[i] + m.element_strides[i] - 1) / m.element_strides[i];
}

/// Round to nearest even at 10 mantissa bits; NaN gives 0x7fffe000 (measured).
uint32_t to_tf32(uint32_t bits) {
  float v = std::bit_cast<float>(bits);
  return std::isnan(v) ? 0x7fffe000 : encode_float(v, ScalarType::tf32);
}

ScalarType scalar_of(TensorType t) {
  switch (t) {
    case TensorType::u16:
      return ScalarType::u16;
    case TensorType::u32:
      return ScalarType::u32;
    case TensorType::s32:
      return ScalarType::s32;
    case TensorType::u64:
      return ScalarType::u64;
    case TensorType::s64:
      return ScalarType::s64;
    case TensorType::f16:
      return ScalarType::f16;
    case TensorType::bf16:
      return ScalarType::bf16;
    case TensorType::f32:
    case TensorType::f32_ftz:
    case TensorType::tf32:
    case TensorType::tf32_ftz:
      return ScalarType::f32;
    case TensorType::f64:
      return ScalarType::f64;
    default:
      return ScalarType::none;
  }
}

uint32_t flush(uint32_t bits) { return bits & 0x7f800000 ? bits : bits & 0x80000000; }

}  // namespace

TensorBox make_box(const TensorMap& m, const std::array<int32_t, 5>& at, bool store) {
  TensorBox box;
  box.map = m;
  box.at = at;
  if (m.interleave != TensorInterleave::none)
    throw Fault(Check::tensor_map, "interleaved layouts are not supported");
  int bits = element_bits(m.type);
  int64_t inner_bits = int64_t{at[0]} * bits;
  if (inner_bits % 128)
    throw Fault(Check::illegal_instruction,
                fmt::format("innermost coordinate {} x {} bits is not a multiple of 16 bytes", at[0], bits));
  for (uint32_t i = 0; store && i < m.rank; ++i)
    if (at[i] < 0)
      throw Fault(Check::illegal_instruction,
                  fmt::format("coordinate {} of a store or reduce is negative: {}", i, at[i]));
  if (store && is_align16(m.type)) throw Fault(Check::tensor_map, "this element type can only be loaded");
  box.row_bytes = is_align16(m.type) ? m.box[0] : m.box[0] * static_cast<uint32_t>(bits) / 8;
  box.row_pitch = std::max<uint32_t>(box.row_bytes, static_cast<uint32_t>(swizzle_span(m.swizzle)));
  for (uint32_t i = 1; i < m.rank; ++i) box.rows *= steps(m, i);
  box.smem_bytes = box.rows * box.row_pitch;
  box.payload_bytes = box.rows * (m.box[0] * static_cast<uint32_t>(bits) / 8);
  return box;
}

BoxRow box_row(const TensorBox& box, uint32_t row) {
  const TensorMap& m = box.map;
  BoxRow r{m.address, 0, 0};
  bool inside = true;
  for (uint32_t i = 1; i < m.rank; ++i) {
    uint32_t n = steps(m, i);
    int64_t c = int64_t{box.at[i]} + int64_t{row % n} * m.element_strides[i];
    row /= n;
    if (c < 0 || static_cast<uint64_t>(c) >= m.dims[i]) inside = false;
    r.address += static_cast<uint64_t>(c) * m.strides_bytes[i - 1];
  }
  int64_t bits = element_bits(m.type);
  r.address += static_cast<uint64_t>(int64_t{box.at[0]} * bits / 8);
  if (!inside) return r;
  int64_t low = std::max<int64_t>(0, -int64_t{box.at[0]});
  int64_t high = std::min<int64_t>(m.box[0], static_cast<int64_t>(m.dims[0]) - box.at[0]);
  if (high <= low) return r;
  r.first = static_cast<uint32_t>(low);
  r.count = static_cast<uint32_t>(high - low);
  return r;
}

void read_box(Warp& w, const TensorBox& box, std::vector<uint8_t>& out) {
  const TensorMap& m = box.map;
  uint32_t bits = static_cast<uint32_t>(element_bits(m.type));
  bool convert = m.type == TensorType::tf32 || m.type == TensorType::tf32_ftz;
  out.resize(size_t{box.rows} * box.row_bytes);
  for (uint32_t row = 0; row < box.rows; ++row) {
    uint8_t* to = out.data() + size_t{row} * box.row_bytes;
    BoxRow r = box_row(box, row);
    bool whole = r.count == m.box[0];
    if (!whole) {
      if (m.nan_fill)
        for (uint32_t i = 0; i + 2 <= box.row_bytes; i += 2)
          to[i] = 0xf7, to[i + 1] = 0x7f;  // 0x7ff7 (measured)
      else
        std::memset(to, 0, box.row_bytes);
    }
    if (r.count == 0) continue;
    uint64_t address = r.address + uint64_t{r.first} * bits / 8;
    uint32_t bytes = static_cast<uint32_t>((uint64_t{r.count} * bits + 7) / 8);
    const uint8_t* from = global_place(w, address, bytes, false);
    if (is_align16(m.type)) {
      uint32_t unit = packed_unit(m.type);
      for (uint32_t u = 0; u * 16 < m.box[0]; ++u) {
        std::memset(to + u * 16, 0, 16);
        if (u * unit + unit <= bytes) std::memcpy(to + u * 16, from + u * unit, unit);
      }
      continue;
    }
    std::memcpy(to + uint64_t{r.first} * bits / 8, from, bytes);
    if (convert)
      for (uint32_t i = 0; i < bytes; i += 4) {
        uint32_t v;
        std::memcpy(&v, to + r.first * 4 + i, 4);
        v = to_tf32(v);
        std::memcpy(to + r.first * 4 + i, &v, 4);
      }
  }
}

namespace {

template <class F>
void for_units(const TensorBox& box, uint32_t offset, F copy) {
  TensorSwizzle swizzle = box.map.swizzle;
  for (uint32_t row = 0; row < box.rows; ++row) {
    uint32_t line = offset + row * box.row_pitch;
    uint32_t at = row * box.row_bytes;
    if (swizzle == TensorSwizzle::none) {
      copy(at, line, box.row_bytes);
    } else if (swizzle == TensorSwizzle::b128_atom32_flip8) {
      for (uint32_t b = 0; b < box.row_bytes; b += 8) copy(at + b, swizzle_address(swizzle, line + b), 8);
    } else {
      for (uint32_t b = 0; b < box.row_bytes; b += 16) copy(at + b, swizzle_address(swizzle, line + b), 16);
    }
  }
}

}  // namespace

void scatter_box(const TensorBox& box, const uint8_t* rows, uint8_t* smem, uint32_t offset) {
  for_units(box, offset,
            [&](uint32_t from, uint32_t to, uint32_t n) { std::memcpy(smem + to, rows + from, n); });
}

void gather_box(const TensorBox& box, uint8_t* rows, const uint8_t* smem, uint32_t offset) {
  for_units(box, offset,
            [&](uint32_t to, uint32_t from, uint32_t n) { std::memcpy(rows + to, smem + from, n); });
}

void write_box(Warp& w, const TensorBox& box, const uint8_t* rows, int reduce) {
  const TensorMap& m = box.map;
  uint32_t bits = static_cast<uint32_t>(element_bits(m.type));
  ScalarType type = scalar_of(m.type);
  if (reduce >= 0 && type == ScalarType::none)
    throw Fault(Check::tensor_map, "this element type cannot be reduced");
  for (uint32_t row = 0; row < box.rows; ++row) {
    BoxRow r = box_row(box, row);
    if (r.count == 0) continue;
    uint64_t address = r.address + uint64_t{r.first} * bits / 8;
    uint32_t bytes = static_cast<uint32_t>((uint64_t{r.count} * bits + 7) / 8);
    uint8_t* to = global_place(w, address, bytes, true);
    const uint8_t* from = rows + size_t{row} * box.row_bytes + uint64_t{r.first} * bits / 8;
    if (reduce < 0) {
      std::memcpy(to, from, bytes);
      continue;
    }
    uint32_t size = bits / 8;
    bool ftz = m.type == TensorType::f32_ftz;
    for (uint32_t i = 0; i < r.count; ++i) {
      uint64_t old = 0, b = 0;
      std::memcpy(&old, to + i * size, size);
      std::memcpy(&b, from + i * size, size);
      if (ftz) old = flush(static_cast<uint32_t>(old)), b = flush(static_cast<uint32_t>(b));
      uint64_t now = atomic_value(static_cast<uint32_t>(reduce), type, old, b, 0);
      if (ftz) now = flush(static_cast<uint32_t>(now));
      std::memcpy(to + i * size, &now, size);
    }
  }
}

}  // namespace gemmtune::emulator
