// tcgen05: register fragments of ld and st, cp, and the multiply in every kind, shape and placement, against
// host sums.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "emulator/matrix.h"
#include "emulator/numeric.h"
#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

std::string registers(const std::string& prefix, int n) {
  std::string out = "{";
  for (int i = 0; i < n; ++i) out += (i ? ", " : "") + prefix + std::to_string(i);
  return out + "}";
}

/// Warp 0 fills its 32 lanes x 64 columns with lane * 1000 + column (32x32b), then loads with `shape`;
/// register i of lane t is returned at [t][i].
std::vector<uint32_t> load_shape(const std::string& shape, int n, const std::string& qualifiers = "",
                                 const std::string& tail = "") {
  Device device;
  PtxRun run;
  run.target = "sm_100a";
  run.smem_bytes = 64;
  run.params = ".param .u64 out_param";
  run.body = R"(
  .reg .b64 out, o; .reg .b32 lane, tm, v, c<64>, r<128>; .shared .align 4 .b32 address;
  ld.param.u64 out, [out_param]; mov.u32 lane, %laneid;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 64;
  ld.shared.u32 tm, [address]; mul.lo.u32 v, lane, 1000;
)";
  for (int i = 0; i < 64; ++i)
    run.body += "add.u32 c" + std::to_string(i) + ", v, " + std::to_string(i) + ";\n";
  run.body += "tcgen05.st.sync.aligned.32x32b.x64.b32 [tm], " + registers("c", 64) +
              "; tcgen05.wait::st.sync.aligned;\n";
  run.body +=
      "tcgen05.ld.sync.aligned." + shape + qualifiers + ".b32 " + registers("r", n) + ", [tm]" + tail + ";\n";
  run.body += "tcgen05.wait::ld.sync.aligned; mul.wide.u32 o, lane, " + std::to_string(4 * n) +
              "; add.u64 out, out, o;\n";
  for (int i = 0; i < n; ++i)
    run.body += "st.global.u32 [out+" + std::to_string(4 * i) + "], r" + std::to_string(i) + ";\n";
  run.body += "tcgen05.dealloc.cta_group::1.sync.aligned.b32 tm, 64;";
  uint64_t out = device.allocate(static_cast<uint64_t>(128 * n));
  LaunchResult r = run.run(device, {out});
  EXPECT_TRUE(r.clean() && r.diagnoses.empty()) << r.text();
  return read_buffer<uint32_t>(device, out, static_cast<size_t>(32 * n));
}

TEST(TensorMemory, LoadFragments) {
  auto check = [](const std::string& shape, int n, auto where) {
    auto got = load_shape(shape, n);
    for (uint32_t t = 0; t < 32; ++t)
      for (uint32_t i = 0; i < static_cast<uint32_t>(n); ++i) {
        auto [row, column] = where(t, i);
        EXPECT_EQ(got[t * static_cast<uint32_t>(n) + i], row * 1000 + column)
            << shape << " lane " << t << " register " << i;
      }
  };
  using P = std::pair<uint32_t, uint32_t>;
  check("32x32b.x8", 8, [](uint32_t t, uint32_t i) { return P(t, i); });
  check("16x64b.x4", 4, [](uint32_t t, uint32_t i) { return P(t / 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * i); });
  check("16x128b.x4", 8,
        [](uint32_t t, uint32_t i) { return P(t / 4 + 8 * (i & 1), (t & 3) + 4 * (i >> 1)); });
  check("16x256b.x2", 8, [](uint32_t t, uint32_t i) {
    return P(t / 4 + 8 * (i >> 1 & 1), (i & 1) + 2 * (t & 3) + 8 * (i >> 2));
  });
  // Appendix A: 16x256b.x2, thread 13, register 6 is row 11, column 10.
  EXPECT_EQ(load_shape("16x256b.x2", 8)[13 * 8 + 6], 11010u);
  auto split = load_shape("16x32bx2.x4", 4, "", ", 8");
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(split[t * 4 + 1], (t & 15) * 1000 + 1 + (t < 16 ? 0 : 8));
  auto packed = load_shape("32x32b.x2", 2, ".pack::16b");
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(packed[t * 2 + 1], ((t * 1000 + 2) & 0xffff) | (t * 1000 + 3) << 16);
}

// --- multiply ---

struct Multiply {
  std::string kind = "f16";
  uint32_t group = 1;
  uint32_t idesc = 0;
  ScalarType type = ScalarType::f16;
  uint32_t m = 128, n = 64;  ///< totals of the pair
  bool a_mn = false, b_mn = false;
  TensorSwizzle swizzle = TensorSwizzle::none;
  bool a_in_tmem = false;
  std::string extra;  ///< behind the predicate, for example ", 1" for scale-d
  bool accumulate_twice = false;
};

uint32_t code_of(TensorSwizzle s) {
  return s == TensorSwizzle::none   ? 0
         : s == TensorSwizzle::b128 ? 2
         : s == TensorSwizzle::b64  ? 4
         : s == TensorSwizzle::b32  ? 6
                                    : 1;
}

/// Operands are written to shared memory by plain stores where unit_address() says, and multiplied once; D
/// comes back as 128 lanes x 256 columns of each CTA.
std::vector<std::vector<uint32_t>> multiply(const Multiply& t, const std::vector<float>& a,
                                            const std::vector<float>& b, const Schedule& schedule) {
  uint32_t size = static_cast<uint32_t>(size_bytes(t.type)), k = 32 / size;
  uint32_t rows = t.m / t.group, columns = t.n / t.group;
  auto operand = [&](uint32_t start, uint32_t mn, bool mn_major) {
    MatrixOperand o;
    o.descriptor.start = start;
    o.descriptor.swizzle = t.swizzle;
    if (t.swizzle == TensorSwizzle::none) {
      o.descriptor.lbo = mn_major ? mn * 16 : mn * 16;
      o.descriptor.sbo = mn_major ? 128 : 128;
      if (mn_major) o.descriptor.lbo = mn * size / 16 * 128;
    } else {
      uint32_t span = static_cast<uint32_t>(swizzle_span(t.swizzle));
      o.descriptor.sbo = mn_major && t.swizzle == TensorSwizzle::b128_atom32 ? 512 : 8 * span;
      o.descriptor.lbo =
          mn_major ? k / (t.swizzle == TensorSwizzle::b128_atom32 ? 4 : 8) * o.descriptor.sbo : 16;
    }
    o.mn_major = mn_major;
    o.mn = mn;
    o.k = k;
    o.type = t.type;
    return o;
  };
  auto bits_of = [&](float v) -> uint32_t {
    if (t.type == ScalarType::s8 || t.type == ScalarType::u8)
      return static_cast<uint8_t>(static_cast<int>(v));
    if (t.type == ScalarType::tf32) return std::bit_cast<uint32_t>(v);
    return encode_float(v, t.type);
  };
  MatrixOperand oa = operand(0x1000, rows, t.a_mn), ob = operand(0x9000, columns, t.b_mn);
  constexpr uint32_t kImage = 0x10000;
  std::vector<uint8_t> images(size_t{kImage} * t.group);
  std::vector<uint32_t> a_words(size_t{128} * 8 * t.group);
  for (uint32_t cta = 0; cta < t.group; ++cta) {
    auto put = [&](const MatrixOperand& o, uint32_t mn, uint32_t p, float v) {
      uint32_t per = 16 / size;
      uint32_t unit = o.mn_major ? unit_address(o, mn / per * per, p) + mn % per * size
                                 : unit_address(o, mn, p / per * per) + p % per * size;
      uint32_t bits = bits_of(v);
      std::memcpy(images.data() + cta * kImage + unit, &bits, size);
    };
    for (uint32_t p = 0; p < k; ++p) {
      for (uint32_t i = 0; i < rows; ++i) {
        float v = a[(cta * rows + i) * k + p];
        put(oa, i, p, v);
        uint32_t bits = bits_of(v);
        std::memcpy(reinterpret_cast<uint8_t*>(&a_words[(cta * 128 + i) * 8]) + p * size, &bits, size);
      }
      for (uint32_t j = 0; j < columns; ++j) put(ob, j, p, b[(cta * columns + j) * k + p]);
    }
  }
  auto bits = [&](const MatrixOperand& o) {
    const MatrixDescriptor& d = o.descriptor;
    return uint64_t{d.start >> 4} | uint64_t{d.lbo >> 4} << 16 | uint64_t{d.sbo >> 4} << 32 | 1ull << 46 |
           uint64_t{code_of(t.swizzle)} << 61;
  };
  Device device;
  std::string group = "cta_group::" + std::to_string(t.group);
  PtxRun run;
  run.target = "sm_100a";
  run.grid = run.cluster = {t.group, 1, 1};
  run.block = {128, 1, 1};
  run.smem_bytes = kImage - 0x400 - 64;
  run.schedule = schedule;
  run.params =
      ".param .u64 out_param, .param .u64 in_param, .param .u64 a_param, .param .u64 b_param, .param .u32 "
      "i_param, .param .u64 w_param";
  std::string mma =
      "tcgen05.mma." + group + ".kind::" + t.kind + " [tm], " + (t.a_in_tmem ? "[ta]" : "ad") + ", bd, id, ";
  run.body = R"(
  .reg .b64 out, in, ad, bd, o, w; .reg .b32 lane, tid, warp, rank, tm, ta, id, v, i, s, t, bar, leader, rows, r<8>; .reg .b16 mask; .reg .pred p, q, one, f;
  .shared .align 8 .b64 barrier; .shared .align 4 .b32 address;
  ld.param.u64 out, [out_param]; ld.param.u64 in, [in_param]; ld.param.u64 ad, [a_param]; ld.param.u64 bd, [b_param]; ld.param.u32 id, [i_param];
  ld.param.u64 w, [w_param];
  mov.u32 tid, %tid.x; and.b32 lane, tid, 31; shr.u32 warp, tid, 5; mov.u32 rank, %cluster_ctarank; mov.u32 bar, barrier; mov.b16 mask, 3;
  setp.eq.u32 one, tid, 0;
  @one mbarrier.init.shared::cta.b64 [bar], 1;
  @one fence.mbarrier_init.release.cluster;
  mul.wide.u32 o, rank, 65536; add.u64 in, in, o;
  mov.u32 i, tid; shl.b32 i, i, 4; add.u32 i, i, 4096; shl.b32 s, rank, 24;
L: setp.lt.u32 p, i, 65472; @!p bra F; { .reg .b64 x, y, z; cvt.u64.u32 x, i; add.u64 x, x, in; ld.global.v2.u64 {y, z}, [x]; add.u32 t, s, i; st.shared.v2.u64 [t], {y, z}; }
  add.u32 i, i, 2048; bra L;
F: fence.proxy.async.shared::cta;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.eq.u32 q, warp, 0; @!q bra G;
  tcgen05.alloc.)" +
             group + R"(.sync.aligned.shared::cta.b32 [address], 512;
G: tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  ld.shared.u32 tm, [address]; add.u32 ta, tm, 300;
  mad.lo.u32 t, rank, 128, tid; mul.wide.u32 o, t, 32; add.u64 w, w, o;
  ld.global.v4.b32 {r0, r1, r2, r3}, [w]; ld.global.v4.b32 {r4, r5, r6, r7}, [w+16];
  shl.b32 t, warp, 21; add.u32 t, t, ta;
  tcgen05.st.sync.aligned.32x32b.x8.b32 [t], {r0, r1, r2, r3, r4, r5, r6, r7}; tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  setp.eq.and.u32 p, rank, 0, one; setp.ne.u32 f, 0, 0;
  @!p bra W;
  )" + mma + "f" +
             (t.accumulate_twice ? "" : t.extra) + ";\n" +
             (t.accumulate_twice ? "setp.eq.u32 f, 0, 0; " + mma + "f" + t.extra + ";" : "") + R"(
  tcgen05.commit.)" +
             group +
             (t.group == 2 ? ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], mask;"
                           : ".mbarrier::arrive::one.shared::cluster.b64 [bar];") +
             R"(
W: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra W;
  tcgen05.fence::after_thread_sync; bar.warp.sync -1;
  mad.lo.u32 t, rank, 128, tid; mul.wide.u32 o, t, 1024; add.u64 out, out, o; shl.b32 t, warp, 21; add.u32 t, t, tm; mov.u32 i, 0;
S: tcgen05.ld.sync.aligned.32x32b.x8.b32 {r0, r1, r2, r3, r4, r5, r6, r7}, [t]; tcgen05.wait::ld.sync.aligned;
  st.global.v4.b32 [out], {r0, r1, r2, r3}; st.global.v4.b32 [out+16], {r4, r5, r6, r7};
  add.u32 t, t, 8; add.u64 out, out, 32; add.u32 i, i, 8; setp.lt.u32 p, i, COLUMNS; @p bra S;
  tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  @!q bra X; tcgen05.dealloc.)" +
             group + R"(.sync.aligned.b32 tm, 512;
X:)";
  bool folded = t.group == 2 && t.m == 128;
  run.body.replace(run.body.find("COLUMNS"), 7, std::to_string(folded ? t.n / 2 : t.n));
  uint64_t out = device.allocate(131072 * t.group);
  LaunchResult r = run.run(
      device, {out, make_buffer(device, images), bits(oa), bits(ob), t.idesc, make_buffer(device, a_words)});
  EXPECT_TRUE(r.completed) << r.text();
  bool only_half_lanes = t.m == 64;  // the other lanes are read here although nothing wrote them
  if (!only_half_lanes) {
    EXPECT_TRUE(r.clean()) << r.text();
  }
  std::vector<std::vector<uint32_t>> result;
  for (uint32_t cta = 0; cta < t.group; ++cta)
    result.push_back(read_buffer<uint32_t>(device, out + 131072 * cta, 32768));
  return result;
}

void check_multiply(const Multiply& t) {
  uint32_t size = static_cast<uint32_t>(size_bytes(t.type)), k = 32 / size, rows = t.m / t.group;
  std::vector<float> a(size_t{t.m} * k), b(size_t{t.n} * k);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(static_cast<int>(i * 5 % 7) - (t.type == ScalarType::u8 ? 0 : 3));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<float>(static_cast<int>(i * 3 % 5) - (t.type == ScalarType::u8 ? 0 : 2));
  bool folded = t.group == 2 && t.m == 128;
  for (const Schedule& schedule : {Schedule{SchedulePolicy::eager, 0}, Schedule{SchedulePolicy::lazy, 0}}) {
    auto d = multiply(t, a, b, schedule);
    int wrong = 0;
    for (uint32_t i = 0; i < t.m; ++i)
      for (uint32_t j = 0; j < t.n; ++j) {
        float sum = 0;
        for (uint32_t p = 0; p < k; ++p) sum += a[i * k + p] * b[j * k + p];
        if (t.accumulate_twice) sum = t.extra.empty() ? 2 * sum : sum + sum / 2;
        uint32_t r = i % rows, lane = t.m == 64 ? 32 * (r / 16) + r % 16 : r, column = j;
        if (folded) lane = r + 64 * (j >= t.n / 2), column = j % (t.n / 2);
        uint32_t bits = d[i / rows][lane * 256 + column];
        float got = t.kind.substr(0, 2) == "i8" ? static_cast<float>(static_cast<int32_t>(bits))
                    : (t.idesc >> 4 & 3) == 0
                        ? static_cast<float>(decode_float(bits & 0xffff, ScalarType::f16))
                        : std::bit_cast<float>(bits);
        wrong += got != sum;
      }
    EXPECT_EQ(wrong, 0) << t.kind << " m " << t.m << " n " << t.n << " group " << t.group << " swizzle "
                        << static_cast<int>(t.swizzle);
  }
}

uint32_t shape_bits(uint32_t m, uint32_t n) { return n / 8 << 17 | m / 16 << 24; }

TEST(Multiply, KindsAndTypes) {
  Multiply t;
  t.idesc = 0x10 | shape_bits(128, 64);
  check_multiply(t);
  t.idesc = shape_bits(128, 64);  // f16 accumulator
  check_multiply(t);
  t.type = ScalarType::bf16;
  t.idesc = 0x490 | shape_bits(128, 64);
  check_multiply(t);
  t = {};
  t.kind = "tf32";
  t.type = ScalarType::tf32;
  t.idesc = 0x910 | shape_bits(128, 64);
  check_multiply(t);
  t = {};
  t.kind = "f8f6f4";
  t.type = ScalarType::e4m3;
  t.idesc = 0x10 | shape_bits(128, 64);
  check_multiply(t);
  t.type = ScalarType::e5m2;
  t.idesc = 0x490 | shape_bits(128, 64);
  check_multiply(t);
  t = {};
  t.kind = "i8";
  t.type = ScalarType::s8;
  t.idesc = 0x4A0 | shape_bits(128, 64);
  check_multiply(t);
  t.type = ScalarType::u8;
  t.idesc = 0x20 | shape_bits(128, 64);
  check_multiply(t);
}

TEST(Multiply, SwizzlesAndMajors) {
  for (bool mn : {false, true})
    for (TensorSwizzle s :
         {TensorSwizzle::none, TensorSwizzle::b32, TensorSwizzle::b64, TensorSwizzle::b128}) {
      Multiply t;
      t.swizzle = s;
      t.a_mn = t.b_mn = mn;
      t.idesc = 0x10 | shape_bits(128, 64) | (mn ? 3u << 15 : 0);
      check_multiply(t);
    }
  Multiply t;
  t.kind = "tf32";
  t.type = ScalarType::tf32;
  t.swizzle = TensorSwizzle::b128_atom32;
  t.a_mn = t.b_mn = true;
  t.idesc = 0x910 | shape_bits(128, 64) | 3u << 15;
  check_multiply(t);
}

TEST(Multiply, Placements) {
  Multiply t;
  t.m = 64;
  t.idesc = 0x10 | shape_bits(64, 64);
  check_multiply(t);
  t = {};
  t.group = 2;
  t.m = 256;
  t.n = 128;
  t.idesc = 0x10 | shape_bits(256, 128);
  check_multiply(t);
  t.m = 128;
  t.idesc = 0x10 | shape_bits(128, 128);
  check_multiply(t);
}

TEST(Multiply, AInTensorMemoryAndScaleD) {
  Multiply t;
  t.a_in_tmem = true;
  t.idesc = 0x10 | shape_bits(128, 64);
  check_multiply(t);
  t.kind = "f8f6f4";
  t.type = ScalarType::e4m3;
  check_multiply(t);
  t = {};
  t.idesc = 0x10 | shape_bits(128, 64);
  t.accumulate_twice = true;
  check_multiply(t);
  t.extra = ", 1";
  check_multiply(t);
}

// The collector hints only say what happens to A in its buffer.
TEST(Multiply, EveryKindGroupAndCollector) {
  struct Kind {
    const char* name;
    ScalarType type;
    uint32_t idesc;
  };
  for (const Kind& kind : {Kind{"f16", ScalarType::f16, 0x10},
                           {"tf32", ScalarType::tf32, 0x910},
                           {"f8f6f4", ScalarType::e4m3, 0x10},
                           {"i8", ScalarType::s8, 0x4A0}})
    for (uint32_t group : {1u, 2u})
      for (const char* collector : {"", ".collector::a::fill", ".collector::a::use", ".collector::a::lastuse",
                                    ".collector::a::discard"}) {
        Multiply t;
        t.kind = std::string(kind.name) + collector;
        t.type = kind.type;
        t.group = group;
        t.m = 128 * group;
        t.n = 32;
        t.idesc = kind.idesc | shape_bits(t.m, t.n);
        check_multiply(t);
      }
}

}  // namespace
}  // namespace gemmtune::emulator
