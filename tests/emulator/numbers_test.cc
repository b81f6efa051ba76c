// Descriptors, swizzles, tensor maps and accumulation against the worked numbers of ptx-facts (appendix
// A, 3.3, 10.2).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "emulator/diagnosis.h"
#include "emulator/instruction_descriptor.h"
#include "emulator/matrix.h"
#include "emulator/numeric.h"
#include "emulator/tensor_map.h"

namespace gemmtune::emulator {
namespace {

InstructionDescriptor idesc(uint32_t bits, MmaKind kind, uint32_t group = 1) {
  std::string warning;
  return decode_instruction_descriptor(bits, kind, group, false, &warning);
}

TEST(InstructionDescriptor, WorkedValues) {
  auto d = idesc(0x08400490, MmaKind::f16);
  EXPECT_EQ(d.m, 128u);
  EXPECT_EQ(d.n, 256u);
  EXPECT_EQ(d.a, ScalarType::bf16);
  EXPECT_EQ(d.d, ScalarType::f32);
  EXPECT_FALSE(d.a_mn_major || d.b_mn_major);
  EXPECT_EQ(idesc(0x10400490, MmaKind::f16, 2).m, 256u);
  d = idesc(0x08210490, MmaKind::f16);
  EXPECT_EQ(d.n, 128u);
  EXPECT_TRUE(d.b_mn_major);
  EXPECT_EQ(idesc(0x08400010, MmaKind::f16).a, ScalarType::f16);
  EXPECT_EQ(idesc(0x08400000, MmaKind::f16).d, ScalarType::f16);
  EXPECT_EQ(idesc(0x08400910, MmaKind::tf32).k, 8u);
  EXPECT_EQ(idesc(0x08400010, MmaKind::f8f6f4).a, ScalarType::e4m3);
  EXPECT_EQ(idesc(0x08400090, MmaKind::f8f6f4).a, ScalarType::e5m2);
  d = idesc(0x084004A0, MmaKind::i8);
  EXPECT_EQ(d.a, ScalarType::s8);
  EXPECT_EQ(d.d, ScalarType::s32);
}

std::string fault(uint32_t bits, MmaKind kind, uint32_t group = 1) {
  try {
    idesc(bits, kind, group);
  } catch (const Fault& f) {
    return f.what();
  }
  return "accepted";
}

TEST(InstructionDescriptor, NamesTheField) {
  EXPECT_EQ(fault(0x10400490, MmaKind::f16), "M = 256 is not legal for cta_group::1");
  EXPECT_EQ(fault(0x08400490 | 1 << 6, MmaKind::f16), "bit 6 must be 0");
  EXPECT_EQ(fault(0x08400090, MmaKind::f16), "A and B have different formats");
  EXPECT_EQ(fault(0x084004B0, MmaKind::i8), "D format (bits 4-5) is invalid");
  EXPECT_EQ(fault(0x08400490, MmaKind::tf32), "format 1 of A is not legal for this kind");
  EXPECT_EQ(fault(0x08020490, MmaKind::f16, 2), "N = 8 is not legal for cta_group::2 and M = 128");
}

TEST(MatrixDescriptor, WorkedValues) {
  auto d = decode_tcgen05_descriptor(0x4000404000010040, "A");
  EXPECT_EQ(d.start, 0x400u);
  EXPECT_EQ(d.sbo, 1024u);
  EXPECT_EQ(d.swizzle, TensorSwizzle::b128);
  EXPECT_EQ(decode_tcgen05_descriptor(0x4000404000010042, "A").start, 0x420u);
  d = decode_tcgen05_descriptor(0x8000402000010040, "A");
  EXPECT_EQ(d.sbo, 512u);
  EXPECT_EQ(d.swizzle, TensorSwizzle::b64);
  EXPECT_EQ(decode_tcgen05_descriptor(0x4000404002000040, "A").lbo, 8192u);
  d = decode_tcgen05_descriptor(0x0000400800000040, "A");
  EXPECT_EQ(d.swizzle, TensorSwizzle::none);
  EXPECT_EQ(d.sbo, 128u);
  EXPECT_EQ(decode_wgmma_descriptor(0x4000004000010040, "A").swizzle, TensorSwizzle::b128);
  EXPECT_THROW(decode_tcgen05_descriptor(0x4000004000010040, "A"), Fault);
  EXPECT_THROW(decode_wgmma_descriptor(0x4000404000010040, "A"), Fault);
}

TEST(MatrixDescriptor, AddressesOfUnits) {
  // K-major, 128B swizzle, start 0x400: row 1 lies 128 bytes on, its first unit XORed with 1.
  MatrixOperand o{decode_tcgen05_descriptor(0x4000404000010040, "A"), false, 128, 16, ScalarType::bf16, 0};
  EXPECT_EQ(unit_address(o, 0, 0), 0x400u);
  EXPECT_EQ(unit_address(o, 1, 0), 0x490u);
  EXPECT_EQ(unit_address(o, 1, 8), 0x480u);
  EXPECT_EQ(unit_address(o, 8, 0), 0x800u);
  // Unswizzled: LBO along K, SBO along MN when K-major; the other way round when MN-major (ptx-facts 2.2).
  o.descriptor.swizzle = TensorSwizzle::none;
  o.descriptor.lbo = 128;
  o.descriptor.sbo = 256;
  EXPECT_EQ(unit_address(o, 9, 8), 0x400u + 16 + 256 + 128);
  o.mn_major = true;
  EXPECT_EQ(unit_address(o, 8, 9), 0x400u + 256 + 16 + 128);
}

TEST(Swizzle, WorkedValues) {
  EXPECT_EQ(swizzle_address(TensorSwizzle::b128, 0x4d0), 0x4c0u + 0);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b128, 0x7f0), 0x780u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b128, 0x480), 0x490u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b64, 0x4d0), 0x4c0u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b64, 0x7f0), 0x7c0u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b32, 0x4d0), 0x4c0u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b32, 0x7f0), 0x7e0u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b128_atom32, 0x4d0), 0x4f0u);
  EXPECT_EQ(swizzle_address(TensorSwizzle::b128_atom32, 0x7f0), 0x790u);
}

TensorMap good_map() {
  TensorMap m;
  m.type = TensorType::bf16;
  m.address = 0x7000000000;
  m.dims = {128, 64};
  m.strides_bytes = {256};
  m.box = {64, 64};
  m.swizzle = TensorSwizzle::b128;
  return m;
}

TEST(TensorMap, RoundTripAndRules) {
  TensorMap m = good_map(), back;
  EXPECT_EQ(decode_tensor_map(encode_tensor_map(m).data(), back), "");
  EXPECT_EQ(back.dims, m.dims);
  EXPECT_EQ(back.box, m.box);
  m.dims[0] = 1ull << 32;
  EXPECT_EQ(check_tensor_map(m, true), "");
  auto broken = [](auto change) {
    TensorMap bad = good_map();
    change(bad);
    return check_tensor_map(bad, false);
  };
  EXPECT_EQ(broken([](TensorMap& t) { t.rank = 6; }), "rank 6 is not 1 to 5");
  EXPECT_EQ(broken([](TensorMap& t) { t.address += 8; }),
            "globalAddress 0x7000000008 is not a multiple of 16");
  EXPECT_EQ(broken([](TensorMap& t) { t.dims[0] = 0; }), "globalDim[0] = 0 is not 1 to 2^32");
  EXPECT_EQ(broken([](TensorMap& t) { t.dims[1] = (1ull << 32) + 1; }),
            "globalDim[1] = 4294967297 is not 1 to 2^32");
  EXPECT_EQ(broken([](TensorMap& t) { t.strides_bytes[0] = 264; }),
            "globalStrides[0] = 264 is not a multiple of 16");
  EXPECT_EQ(broken([](TensorMap& t) { t.strides_bytes[0] = 1ull << 40; }),
            "globalStrides[0] = 1099511627776 is not below 2^40");
  EXPECT_EQ(broken([](TensorMap& t) { t.box[1] = 257; }), "boxDim[1] = 257 is not 1 to 256");
  EXPECT_EQ(broken([](TensorMap& t) { t.box[0] = 4; }),
            "boxDim[0] x element size = 8 bytes is not a multiple of 16");
  EXPECT_EQ(broken([](TensorMap& t) { t.box[0] = 128; }),
            "boxDim[0] x element size = 256 bytes exceeds the swizzle span of 128");
  EXPECT_EQ(broken([](TensorMap& t) { t.element_strides[0] = 0; }), "elementStrides[0] = 0 is not 1 to 8");
  EXPECT_EQ(broken([](TensorMap& t) { t.type = TensorType::u16, t.nan_fill = true; }),
            "oobFill NaN needs a floating element type");
  EXPECT_EQ(broken([](TensorMap& t) { t.swizzle = TensorSwizzle::b128_atom32; }),
            "swizzle mode needs sm_100");
  // Accepted although odd (measured): stride 0, a box larger than the tensor, a null address.
  EXPECT_EQ(broken([](TensorMap& t) { t.strides_bytes[0] = 0, t.dims[1] = 8, t.address = 0; }), "");
  TensorMap big = good_map();
  big.swizzle = TensorSwizzle::none;
  big.rank = 3;
  big.dims = {256, 256, 256};
  big.strides_bytes = {512, 131072};
  big.box = {256, 228, 2};  // 233472 bytes
  EXPECT_EQ(check_tensor_map(big, false), "");
  big.box[1] = 229;
  EXPECT_NE(check_tensor_map(big, false), "");
}

TEST(Floats, EveryHalfAndByteRoundTrips) {
  for (ScalarType t : {ScalarType::f16, ScalarType::bf16, ScalarType::e4m3, ScalarType::e5m2,
                       ScalarType::e2m3, ScalarType::e3m2, ScalarType::e2m1}) {
    const FloatFormat& format = float_format(t);
    for (uint32_t bits = 0; bits < 2u << (format.exponent_bits + format.mantissa_bits); ++bits) {
      double v = decode_float(bits, t);
      if (!std::isnan(v)) {
        EXPECT_EQ(encode_float(v, t), bits) << name(t);
      }
    }
  }
  EXPECT_EQ(encode_float(448, ScalarType::e4m3), 0x7eu);
  EXPECT_EQ(encode_float(1e9, ScalarType::e4m3), 0x7fu);
  EXPECT_EQ(encode_float(1e9, ScalarType::e4m3, Rounding::nearest_even, true), 0x7eu);
  EXPECT_EQ(encode_float(1e9, ScalarType::e5m2), 0x7cu);
  EXPECT_EQ(encode_float(65520, ScalarType::f16), 0x7c00u);
  EXPECT_EQ(encode_float(65519.99, ScalarType::f16), 0x7bffu);
  EXPECT_EQ(encode_float(std::ldexp(1, -25), ScalarType::f16), 0u);
  EXPECT_EQ(encode_float(std::ldexp(1.5, -25), ScalarType::f16), 1u);
}

/// One output of a k16 bf16 step: D in, products (a, b = 1), D out.
float accumulate(float d, std::vector<float> products) {
  std::vector<float> a(16, 0.0f), b(16 * 8, 0.0f);
  for (size_t i = 0; i < products.size(); ++i) a[i] = products[i];
  for (int i = 0; i < 16; ++i) b[i * 8] = 1.0f;
  float c[8] = {d};
  float* rows[1] = {c};
  AccumulationRule rule{25, 24, ScalarType::bf16, ScalarType::bf16, false};
  multiply_hopper(1, 8, 16, a.data(), 16, b.data(), 8, rows, true, rule);
  return c[0];
}

TEST(Accumulation, HopperVectors) {
  auto p = [](int n) { return std::ldexp(1.0f, n); };
  EXPECT_EQ(accumulate(p(24), {1, 1, 1}), p(24) + 2);
  EXPECT_EQ(accumulate(-p(24), {-1, -1, -1}), -(p(24) + 2));
  EXPECT_EQ(accumulate(p(25), std::vector<float>(16, 1)), p(25) + 16);
  EXPECT_EQ(accumulate(p(26), std::vector<float>(16, 1)), p(26));
  EXPECT_EQ(std::bit_cast<uint32_t>(accumulate(1, {-p(-25)})), 0x3F7FFFFFu);
  EXPECT_EQ(std::bit_cast<uint32_t>(accumulate(1, std::vector<float>(16, p(-25)))), 0x3F800004u);
  EXPECT_EQ(accumulate(1, std::vector<float>(16, p(-26))), 1.0f);
  EXPECT_EQ(accumulate(0, {p(25), -p(25), 1}), 1.0f);
  EXPECT_EQ(accumulate(0, {p(26), -p(26), 1}), 0.0f);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      for (int k = 0; k < 16; ++k) {
        if (i == j || j == k || i == k) continue;
        std::vector<float> v(16, 0.0f);
        v[i] = p(30), v[j] = -p(30), v[k] = 1;
        EXPECT_EQ(accumulate(0, v), 0.0f);
      }
  EXPECT_EQ(std::bit_cast<uint32_t>(accumulate(-0.0f, {-0.0f})), 0u);  // zero results are +0
  EXPECT_EQ(std::bit_cast<uint32_t>(accumulate(INFINITY, {-INFINITY})), 0x7fffffffu);
}

TEST(Accumulation, FastPathEqualsTheRuleOnIntegers) {
  std::vector<float> a(16 * 16), b(16 * 64), c1(16 * 64), c2;
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 61) - 30);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 13 % 53) - 26);
  for (size_t i = 0; i < c1.size(); ++i) c1[i] = static_cast<float>(static_cast<int>(i) * 100 - 40000);
  c2 = c1;
  float *r1[16], *r2[16];
  for (int i = 0; i < 16; ++i) r1[i] = &c1[i * 64], r2[i] = &c2[i * 64];
  AccumulationRule rule{25, 24, ScalarType::bf16, ScalarType::bf16, false};
  multiply_f32(16, 64, 16, a.data(), 16, b.data(), 64, r1, true);
  multiply_exact(16, 64, 16, a.data(), 16, b.data(), 64, r2, true, rule);
  EXPECT_EQ(c1, c2);
}

TEST(Accumulation, Fp8KeepsFourteenBits) {
  float c[8] = {16385.0f};
  float* rows[1] = {c};
  std::vector<float> a(32, 0.0f), b(32 * 8, 0.0f);
  a[0] = b[0] = 1;
  multiply_hopper(1, 8, 32, a.data(), 32, b.data(), 8, rows, true,
                  {13, 14, ScalarType::e4m3, ScalarType::e4m3, false});
  EXPECT_EQ(c[0], 16384.0f + 0);  // 16385 is cut to 16384 and 1 to 0: 2^(14 - 13) is the grid
}

}  // namespace
}  // namespace gemmtune::emulator
