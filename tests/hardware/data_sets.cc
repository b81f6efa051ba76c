// Named sequences of operands. The first values of each are the awkward ones of its type, what follows is
// drawn by a fixed generator; changing a set invalidates every recorded value.
#include <bit>
#include <cstddef>
#include <stdexcept>

#include "tests/hardware/case_file.h"

namespace gemmtune::hardware {
namespace {

/// SplitMix64's finaliser: one independent 64-bit value an index.
uint64_t random_bits(uint64_t index) {
  uint64_t z = (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

constexpr uint32_t kInts[] = {0,          1,          2,          0xffffffff, 0xfffffffe, 0x7fffffff,
                              0x80000000, 0x80000001, 0x7ffffffe, 0x0000ffff, 0x00008000, 0x00007fff,
                              0x00010000, 0xffff8000, 0xffff7fff, 0x000000ff, 0x00000080, 0x0000007f,
                              0xffffff80, 0x55555555, 0xaaaaaaaa, 0x12345678, 31,         32,
                              33,         0x00ffffff, 0x00800000, 7};
constexpr uint64_t kLongs[] = {0,
                               1,
                               2,
                               ~0ull,
                               ~1ull,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0x8000000000000001,
                               0x00000000ffffffff,
                               0x0000000100000000,
                               0x0000000080000000,
                               0xffffffff80000000,
                               0xffffffff7fffffff,
                               0x5555555555555555,
                               0x123456789abcdef0,
                               63,
                               64,
                               65,
                               0x0020000000000001,
                               0x7ffffffffffffbff,
                               0x00ffffff00000000,
                               7,
                               0xffffffffffffff80};
// Zeros, infinities, NaNs (quiet, signalling, with payload), the borders of the subnormals, of the integers,
// of f16, bf16 and fp8, ties.
constexpr uint32_t kFloats[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
    0x7f800001, 0x7fffffff, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x7f7fffff, 0xff7fffff, 0x3f7fffff, 0x3f800001, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000,
    0xc0200000, 0x4f000000, 0xcf000000, 0x4effffff, 0x4f800000, 0x4b000001, 0x4b7fffff, 0x33800000,
    0x33000000, 0x477fe000, 0x477fefff, 0x477ff000, 0x38800000, 0x387fc000, 0x33800001, 0x387fe000,
    0x3f808000, 0x3f818000, 0x7f7f8000, 0x43e00000, 0x43e80000, 0x43e80001, 0x3b000000, 0x3a800000,
    0x3a800001, 0x47600000, 0x47700000, 0x37800000, 0x37000000, 0x37000001, 0x3f801000, 0x3f803000,
    0x40490fdb, 0xc2f70000};
constexpr uint64_t kDoubles[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x0000000000000001,
    0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3fefffffffffffff,
    0x3ff0000000000001, 0x3fe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000,
    0x41e0000000000000, 0xc1e0000000000000, 0x41dfffffffc00000, 0x41f0000000000000, 0x43e0000000000000,
    0xc3e0000000000000, 0x43f0000000000000, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000,
    0x3810000000000000, 0x380fffffffffffff, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001,
    0x3ff0000010000000, 0x3ff0000030000000, 0x3ff0000010000001, 0x40effc0000000000, 0x40effe0000000000,
    0x3f10000000000000, 0x3e60000000000000, 0x3ff0020000000000, 0x3ff0060000000000, 0x3ff0020000000001};
constexpr uint16_t kHalves[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
                                0x7c01, 0x7fff, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400,
                                0x7bff, 0xfbff, 0x3bff, 0x3c01, 0x3800, 0xb800, 0x3e00, 0x4100,
                                0x6800, 0x6801, 0x7800, 0x0200, 0x1400, 0x5bff};
constexpr uint16_t kBfloats[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
                                 0x7f81, 0x7fff, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080,
                                 0x7f7f, 0xff7f, 0x3f7f, 0x3f81, 0x3f00, 0xbf00, 0x3fc0, 0x4020,
                                 0x4380, 0x4381, 0x7f00, 0x0040, 0x3c00, 0x4f00};

template <class T, size_t kCount>
T pick(const T (&awkward)[kCount], uint64_t index, T otherwise) {
  return index < kCount ? awkward[index] : otherwise;
}

/// Any sign and mantissa, exponents within 2^±`span` of one: sums neither vanish nor overflow.
uint32_t moderate_float(uint64_t index, uint32_t span) {
  uint64_t r = random_bits(index);
  uint32_t exponent = 127 - span + static_cast<uint32_t>(r >> 40) % (2 * span + 1);
  return static_cast<uint32_t>(r & 0x807fffff) | exponent << 23;
}
uint32_t moderate_half(uint64_t index) {
  uint64_t r = random_bits(index);
  uint32_t exponent = 11 + static_cast<uint32_t>(r >> 40) % 8;
  return static_cast<uint32_t>(r & 0x83ff) | exponent << 10;
}

/// A whole number from -8 to 8, as f32.
float small_number(uint64_t index) {
  return static_cast<float>(static_cast<int>(random_bits(index) % 17) - 8);
}

/// Exact for whole numbers of up to three bits.
uint32_t small_minifloat(uint64_t index, uint32_t mantissa_bits, uint32_t bias) {
  uint32_t bits = std::bit_cast<uint32_t>(small_number(index) / 2);
  if (!(bits << 1)) return 0;
  uint32_t exponent = (bits >> 23 & 0xff) - 127 + bias;
  uint32_t total = mantissa_bits == 3 ? 4 : 5;
  return (bits >> 31) << (mantissa_bits + total) | exponent << mantissa_bits |
         (bits >> (23 - mantissa_bits) & ((1u << mantissa_bits) - 1));
}

template <class F>
uint64_t packed(uint64_t index, uint32_t count, uint32_t bits, F value) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < count; ++i) out |= uint64_t{value(index * count + i)} << (bits * i);
  return out;
}

}  // namespace

uint64_t data_value(const std::string& set, uint64_t i) {
  if (set == "ints") return pick(kInts, i, static_cast<uint32_t>(random_bits(i)));
  if (set == "longs") return pick(kLongs, i, uint64_t{random_bits(i)});
  if (set == "floats") return pick(kFloats, i, moderate_float(i, i % 3 ? 4 : 60));
  if (set == "doubles") return pick(kDoubles, i, (random_bits(i) & 0x807fffffffffffff) | 0x3f80000000000000);
  if (set == "halves") {  // every awkward value once in each half, paired up differently
    uint32_t low = pick(kHalves, i, static_cast<uint16_t>(random_bits(i)));
    uint32_t high = pick(kHalves, (i * 11 + 5) % 41, static_cast<uint16_t>(random_bits(i) >> 16));
    return low | high << 16;
  }
  if (set == "bfloats") {
    uint32_t low = pick(kBfloats, i, static_cast<uint16_t>(random_bits(i)));
    uint32_t high = pick(kBfloats, (i * 11 + 5) % 41, static_cast<uint16_t>(random_bits(i) >> 16));
    return low | high << 16;
  }
  if (set == "shifts") return i < 40 ? i : i < 48 ? 56 + i - 40 : static_cast<uint32_t>(random_bits(i));
  if (set == "angles") return std::bit_cast<uint32_t>((static_cast<float>(i) - 32.0f) * 0.09765625f);
  if (set == "fp8") return packed(i, 4, 8, [](uint64_t j) { return static_cast<uint32_t>(j & 0xff); });
  if (set == "index") return i;
  if (set == "bytes")
    return packed(i, 4, 8, [](uint64_t j) { return static_cast<uint32_t>((j * 37 + j / 256) & 0xff); });
  if (set == "random") return random_bits(i);
  if (set == "zero") return 0;
  // Matrix operands as 32-bit words: whole numbers, and general values of moderate size.
  if (set == "f16 small") return packed(i, 2, 16, [](uint64_t j) { return small_minifloat(j, 10, 15); });
  if (set == "bf16 small")
    return packed(i, 2, 16, [](uint64_t j) { return std::bit_cast<uint32_t>(small_number(j)) >> 16; });
  if (set == "tf32 small" || set == "f32 small") return std::bit_cast<uint32_t>(small_number(i));
  if (set == "e4m3 small") return packed(i, 4, 8, [](uint64_t j) { return small_minifloat(j, 3, 7); });
  if (set == "e5m2 small") return packed(i, 4, 8, [](uint64_t j) { return small_minifloat(j, 2, 15); });
  if (set == "f16 any") return packed(i, 2, 16, moderate_half);
  if (set == "bf16 any") return packed(i, 2, 16, [](uint64_t j) { return moderate_float(j, 6) >> 16; });
  if (set == "tf32 any" || set == "f32 any") return moderate_float(i, 6);
  if (set == "e4m3 any")  // no NaN
    return packed(i, 4, 8, [](uint64_t j) { return static_cast<uint32_t>(random_bits(j) & 0xf7); });
  if (set == "e5m2 any")  // neither infinity nor NaN
    return packed(i, 4, 8, [](uint64_t j) { return static_cast<uint32_t>(random_bits(j) & 0xdf); });
  throw std::runtime_error("unknown data set '" + set + "'");
}

}  // namespace gemmtune::hardware
