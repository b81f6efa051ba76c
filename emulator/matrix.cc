#include "emulator/matrix.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "emulator/diagnosis.h"
#include "emulator/numeric.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gemmtune::emulator {
namespace {

[[noreturn]] void bad(const char* operand, const std::string& message) {
  throw Fault(Check::matrix_descriptor, fmt::format("descriptor of {}: {}", operand, message));
}

MatrixDescriptor common_fields(uint64_t bits, const char* operand) {
  MatrixDescriptor d;
  d.start = static_cast<uint32_t>(bits & 0x3fff) << 4;
  d.lbo = static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4;
  d.sbo = static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4;
  d.base_offset = static_cast<uint32_t>(bits >> 49 & 7);
  if (bits & 0xc000) bad(operand, "bits 14-15 must be 0");
  if (bits & 0xc0000000) bad(operand, "bits 30-31 must be 0");
  return d;
}

}  // namespace

MatrixDescriptor decode_tcgen05_descriptor(uint64_t bits, const char* operand) {
  MatrixDescriptor d = common_fields(bits, operand);
  uint32_t version = bits >> 46 & 7;
  if (version != 1) bad(operand, fmt::format("bits 46-48 are {:#x}, must be 001 on sm_100a", version));
  if (bits >> 52 & 1) bad(operand, "absolute leading dimension (bit 52) is not supported");
  if (bits >> 53 & 0xff) bad(operand, "bits 53-60 must be 0");
  switch (bits >> 61) {
    case 0:
      d.swizzle = TensorSwizzle::none;
      break;
    case 1:
      d.swizzle = TensorSwizzle::b128_atom32;
      break;
    case 2:
      d.swizzle = TensorSwizzle::b128;
      break;
    case 4:
      d.swizzle = TensorSwizzle::b64;
      break;
    case 6:
      d.swizzle = TensorSwizzle::b32;
      break;
    default:
      bad(operand, fmt::format("layout type {} (bits 61-63) is invalid", bits >> 61));
  }
  return d;
}

MatrixDescriptor decode_wgmma_descriptor(uint64_t bits, const char* operand) {
  MatrixDescriptor d = common_fields(bits, operand);
  if (bits >> 46 & 7) bad(operand, "bits 46-48 must be 0 on sm_90a");
  if (bits >> 52 & 0x3ff) bad(operand, "bits 52-61 must be 0");
  static constexpr TensorSwizzle kLayouts[] = {TensorSwizzle::none, TensorSwizzle::b128, TensorSwizzle::b64,
                                               TensorSwizzle::b32};
  d.swizzle = kLayouts[bits >> 62];
  return d;
}

uint32_t unit_address(const MatrixOperand& o, uint32_t mn, uint32_t k) {
  const MatrixDescriptor& d = o.descriptor;
  uint32_t size = static_cast<uint32_t>(size_bytes(o.type));
  uint32_t address;
  if (d.swizzle == TensorSwizzle::none) {
    if (!o.mn_major) {
      uint32_t kb = k * size;
      return d.start + (mn % 8) * 16 + (mn / 8) * d.sbo + kb / 16 * d.lbo;
    }
    uint32_t mb = mn * size;
    return d.start + mb / 16 * d.sbo + (k % 8) * 16 + (k / 8) * d.lbo;
  }
  uint32_t span = static_cast<uint32_t>(swizzle_span(d.swizzle));
  if (!o.mn_major) {
    address = d.start + (mn % 8) * span + (mn / 8) * d.sbo + k * size;
  } else {
    uint32_t mb = mn * size;
    // The 32-byte atom has 4 rows of K, the others 8 (ptx-facts 2.2).
    uint32_t rows = d.swizzle == TensorSwizzle::b128_atom32 ? 4 : 8;
    address = d.start + mb % span + mb / span * d.lbo + (k % rows) * span + (k / rows) * d.sbo;
  }
  if (d.base_offset == 0) return swizzle_address(d.swizzle, address);
  // The row phase is ((address >> 7) - base offset) & 7 (measured on wgmma).
  uint32_t phase = ((address >> 7) - d.base_offset) & 7;
  uint32_t shifted = (address & ~0x380u) | phase << 7;
  return address ^ (swizzle_address(d.swizzle, shifted) ^ shifted);
}

bool is_integer_element(ScalarType type) { return type == ScalarType::u8 || type == ScalarType::s8; }

namespace {

const std::array<float, 256>& byte_table(ScalarType type) {
  auto make = [](ScalarType t) {
    std::array<float, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      switch (t) {
        case ScalarType::u8:
          table[i] = static_cast<float>(i);
          break;
        case ScalarType::s8:
          table[i] = static_cast<float>(static_cast<int8_t>(i));
          break;
        // Sub-byte types in byte containers: the low bits.
        case ScalarType::e2m3:
        case ScalarType::e3m2:
          table[i] = static_cast<float>(decode_float(i & 0x3f, t));
          break;
        case ScalarType::e2m1:
          table[i] = static_cast<float>(decode_float(i & 0xf, t));
          break;
        default:
          table[i] = static_cast<float>(decode_float(i, t));
          break;
      }
    }
    return table;
  };
  static const std::array<float, 256> u8 = make(ScalarType::u8), s8 = make(ScalarType::s8),
                                      e4m3 = make(ScalarType::e4m3), e5m2 = make(ScalarType::e5m2),
                                      e2m3 = make(ScalarType::e2m3), e3m2 = make(ScalarType::e3m2),
                                      e2m1 = make(ScalarType::e2m1);
  switch (type) {
    case ScalarType::u8:
      return u8;
    case ScalarType::s8:
      return s8;
    case ScalarType::e5m2:
      return e5m2;
    case ScalarType::e2m3:
      return e2m3;
    case ScalarType::e3m2:
      return e3m2;
    case ScalarType::e2m1:
      return e2m1;
    default:
      return e4m3;
  }
}

void f16_portable(const uint8_t* raw, uint32_t count, float* out) {
  for (uint32_t i = 0; i < count; ++i) {
    uint16_t h;
    std::memcpy(&h, raw + 2 * i, 2);
    out[i] = static_cast<float>(decode_float(h, ScalarType::f16));
  }
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) void f16_native(const uint8_t* raw, uint32_t count, float* out) {
  uint32_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(raw + 2 * i))));
  if (i < count) f16_portable(raw + 2 * i, count - i, out + i);
}
#endif

}  // namespace

void convert_elements(const uint8_t* raw, uint32_t count, ScalarType type, float* out) {
  switch (type) {
    case ScalarType::f16: {
#if defined(__x86_64__)
      // Every CPU with AVX2 has F16C, and clang cannot ask for the latter.
      static const bool native = __builtin_cpu_supports("avx2");
      if (native) {
        f16_native(raw, count, out);
        return;
      }
#endif
      f16_portable(raw, count, out);
      return;
    }
    case ScalarType::bf16:
      for (uint32_t i = 0; i < count; ++i) {
        uint16_t h;
        std::memcpy(&h, raw + 2 * i, 2);
        out[i] = std::bit_cast<float>(uint32_t{h} << 16);
      }
      return;
    case ScalarType::tf32:
      for (uint32_t i = 0; i < count; ++i) {
        uint32_t v;
        std::memcpy(&v, raw + 4 * i, 4);
        out[i] = std::bit_cast<float>(v & 0xffffe000);
      }
      return;
    default: {
      const auto& table = byte_table(type);
      for (uint32_t i = 0; i < count; ++i) out[i] = table[raw[i]];
    }
  }
}

void read_operand(const MatrixOperand& o, const std::vector<uint8_t>& smem, float* out, bool k_first,
                  uint32_t leading) {
  // Gather in the order of memory's major direction, convert in one go, then lay out.
  static thread_local std::vector<uint8_t> raw;
  static thread_local std::vector<float> flat;
  size_t elements = size_t{o.mn} * o.k;
  raw.resize(elements * static_cast<size_t>(size_bytes(o.type)));
  flat.resize(elements);
  uint8_t* to = raw.data();
  for_units(o, [&](uint32_t address, uint32_t, uint32_t) {
    if (address + 16 > smem.size())
      throw Fault(Check::out_of_bounds,
                  fmt::format("a matrix operand reaches shared offset {:#x}, the CTA has {:#x} bytes",
                              address, smem.size()));
    std::memcpy(to, smem.data() + address, 16);
    to += 16;
  });
  bool flat_is_k_first = o.mn_major;
  uint32_t row = flat_is_k_first ? o.mn : o.k, rows = flat_is_k_first ? o.k : o.mn;
  if (flat_is_k_first == k_first && leading == row) {
    convert_elements(raw.data(), static_cast<uint32_t>(elements), o.type, out);
    return;
  }
  convert_elements(raw.data(), static_cast<uint32_t>(elements), o.type, flat.data());
  if (flat_is_k_first == k_first) {
    for (uint32_t r = 0; r < rows; ++r)
      std::memcpy(out + size_t{r} * leading, flat.data() + size_t{r} * row, row * 4);
    return;
  }
  for (uint32_t r0 = 0; r0 < rows; r0 += 8)
    for (uint32_t c = 0; c < row; ++c) {
      uint32_t end = std::min(rows, r0 + 8);
      for (uint32_t r = r0; r < end; ++r) out[size_t{c} * leading + r] = flat[size_t{r} * row + c];
    }
}

}  // namespace gemmtune::emulator
