// Every wgmma.mma_async that the front end accepts, once, on small whole numbers: the products and sums are
// exact in every accumulator, so the expected values are the host's. Rounding and layouts are
// tests/hardware/wgmma.case's part.
#include <gtest/gtest.h>

#include <bit>

#include "emulator/numeric.h"
#include "tests/emulator/form_expansion.h"
#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

constexpr uint32_t kM = 64, kRowBytes = 32;  ///< K is 32 bytes in every type

struct Shape {
  uint32_t n = 0, k = 0;
  ScalarType d = ScalarType::none, a = ScalarType::none, b = ScalarType::none;
};

Shape shape_of(const std::string& form) {
  Shape s;
  size_t at = form.find(".m64n") + 5, k = form.find('k', at), end = form.find('.', k);
  s.n = static_cast<uint32_t>(std::stoul(form.substr(at, k - at)));
  s.k = static_cast<uint32_t>(std::stoul(form.substr(k + 1, end - k - 1)));
  ScalarType* types[] = {&s.d, &s.a, &s.b};
  for (ScalarType* type : types) {
    size_t next = std::min(form.find('.', end + 1), form.size());
    *type = *parse_scalar_type(std::string_view(form).substr(end + 1, next - end - 1));
    end = next;
  }
  return s;
}

uint32_t encoded(float v, ScalarType type) {
  if (type == ScalarType::s8 || type == ScalarType::u8) return static_cast<uint8_t>(static_cast<int>(v));
  if (type == ScalarType::tf32) return std::bit_cast<uint32_t>(v);
  return encode_float(v, type);
}

/// K-major without swizzle: eight rows of 16 bytes make a core matrix; its right neighbour follows at 128
/// (LBO), the next eight rows at 256 (SBO).
void put(std::vector<uint8_t>& image, uint32_t row, uint32_t k, float v, ScalarType type) {
  uint32_t size = static_cast<uint32_t>(size_bytes(type)), bits = encoded(v, type), byte = k * size;
  std::memcpy(image.data() + row % 8 * 16 + row / 8 * 256 + byte / 16 * 128 + byte % 16, &bits, size);
}

std::string body_of(const std::string& form, const Shape& s, size_t registers) {
  std::string tail = s.d == ScalarType::s32 ? "" : s.k == 16 ? ", 1, 1, 0, 0" : ", 1, 1";
  std::string body = R"(
  .reg .b64 out, in, o, da, db, x, y; .reg .b32 tid, s, t, i; .reg .pred p; .reg .b32 r<128>;
  ld.param.u64 out, [out_param]; ld.param.u64 in, [in_param];
  mov.u32 tid, %tid.x; mov.u32 s, raw; shl.b32 i, tid, 4;
FILL: cvt.u64.u32 o, i; add.u64 o, o, in; ld.global.v2.u64 {x, y}, [o]; add.u32 t, s, i; st.shared.v2.u64 [t], {x, y};
  add.u32 i, i, 2048; setp.lt.u32 p, i, 10240; @p bra FILL;
  fence.proxy.async; bar.sync 0;
  shr.u32 t, s, 4; cvt.u64.u32 da, t; or.b64 da, da, 0x0000001000080000; add.u64 db, da, 128;
  setp.ne.u32 p, tid, tid;
  wgmma.fence.sync.aligned;
  )" + form + " " + register_list("r", registers) +
                     ", da, db, p" + tail + R"(;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mul.wide.u32 o, tid, 512; add.u64 out, out, o;
)";
  for (size_t i = 0; i < registers; ++i)
    body += "st.global.b32 [out+" + std::to_string(4 * i) + "], r" + std::to_string(i) + ";\n";
  return body;
}

void check(const std::string& form) {
  Shape s = shape_of(form);
  auto a_of = [&](uint32_t i, uint32_t p) {
    return static_cast<float>(static_cast<int>((i * 5 + p * 3) % 4) - (s.a == ScalarType::u8 ? 0 : 2));
  };
  auto b_of = [&](uint32_t j, uint32_t p) {
    return static_cast<float>(static_cast<int>((j * 7 + p) % 3) - (s.b == ScalarType::u8 ? 0 : 1));
  };
  std::vector<uint8_t> image(2048 + 8192, 0);
  std::vector<uint8_t> b_image(8192, 0);
  for (uint32_t p = 0; p < s.k; ++p) {
    for (uint32_t i = 0; i < kM; ++i) put(image, i, p, a_of(i, p), s.a);
    for (uint32_t j = 0; j < s.n; ++j) put(b_image, j, p, b_of(j, p), s.b);
  }
  std::copy(b_image.begin(), b_image.end(), image.begin() + kM * kRowBytes);
  size_t registers = s.d == ScalarType::f16 ? s.n / 4 : s.n / 2;
  PtxRun run;
  run.params = ".param .u64 out_param, .param .u64 in_param";
  run.block = {128, 1, 1};
  run.smem_bytes = static_cast<uint32_t>(image.size());
  run.body = body_of(form, s, registers);
  Device device;
  uint64_t out = device.allocate(128 * 512);
  LaunchResult r = run.run(device, {out, make_buffer(device, image)});
  ASSERT_TRUE(r.clean()) << form << "\n" << r.text();
  auto got = read_buffer<uint32_t>(device, out, 128 * 128);
  int wrong = 0;
  for (uint32_t i = 0; i < kM; ++i)
    for (uint32_t j = 0; j < s.n; ++j) {
      float want = 0;
      for (uint32_t p = 0; p < s.k; ++p) want += a_of(i, p) * b_of(j, p);
      // PTX ISA, fragment of D: a row of each lane group, pairs of columns, the second eight rows behind.
      uint32_t thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, pair = j / 8 * 2 + i % 16 / 8;
      uint32_t word = s.d == ScalarType::f16 ? got[thread * 128 + pair] >> (16 * (j & 1)) & 0xffff
                                             : got[thread * 128 + pair * 2 + (j & 1)];
      float v = s.d == ScalarType::f16   ? static_cast<float>(decode_float(word, ScalarType::f16))
                : s.d == ScalarType::s32 ? static_cast<float>(static_cast<int32_t>(word))
                                         : std::bit_cast<float>(word);
      wrong += v != want;
    }
  EXPECT_EQ(wrong, 0) << form;
}

/// One test a result and element type keeps them short.
class WgmmaForms : public testing::TestWithParam<const char*> {};

TEST_P(WgmmaForms, EachOnce) {
  int count = 0;
  for (const std::string& form : forms_of("wgmma.mma_async")) {
    if (form.find(GetParam()) == std::string::npos) continue;
    check(form);
    ++count;
  }
  EXPECT_GT(count, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, WgmmaForms,
                         testing::Values(".f32.f16.", ".f16.f16.", ".f32.bf16.", ".f32.tf32.", ".f32.e4m3.",
                                         ".f32.e5m2.", ".f16.e4m3.", ".f16.e5m2.", ".s32.s8.", ".s32.u8."),
                         [](const auto& info) {
                           std::string name(info.param + 1);
                           name.pop_back();
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace gemmtune::emulator
