// One small PTX case an instruction form: operands in, expected bits out. The values follow the PTX ISA's
// definitions and were worked out by hand, not by the emulator.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/emulator.h"

namespace gemmtune::emulator {
namespace {

/// Runs `body` in one warp. Registers: 32-bit a b c d, 64-bit la lb lc ld, 16-bit ha hb hc hd, predicates p
/// q. a, la and ha hold in[0] (b: in[1], c: in[2]) in every lane; the result is lane 0's ld if `wide`, else
/// d.
struct Case {
  const char* body;
  uint64_t a, b, c;
  uint64_t want;
  bool wide = false;
};

std::string kernel_of(const std::string& body) {
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry test(.param .u64 in, .param .u64 out)
{
  .reg .b64 pin, pout, la, lb, lc, ld, lo;
  .reg .b32 a, b, c, d, t, u, lane;
  .reg .b16 ha, hb, hc, hd;
  .reg .b128 x;
  .reg .pred p, q;
  .shared .align 16 .b8 s[1024];
  .local .align 8 .b8 l[64];
  ld.param.u64 pin, [in];
  ld.param.u64 pout, [out];
  mov.u32 lane, %laneid;
  ld.global.u64 la, [pin];
  ld.global.u64 lb, [pin+8];
  ld.global.u64 lc, [pin+16];
  cvt.u32.u64 a, la; cvt.u32.u64 b, lb; cvt.u32.u64 c, lc;
  cvt.u16.u32 ha, a; cvt.u16.u32 hb, b; cvt.u16.u32 hc, c;
  mov.u32 d, 0xdeadbeef; mov.u64 ld, 0;
  )" + body +
         R"(
  mul.wide.u32 lo, lane, 16;
  add.u64 pout, pout, lo;
  st.global.u32 [pout], d;
  st.global.u64 [pout+8], ld;
  ret;
}
)";
}

struct LaneResult {
  uint32_t d;
  uint64_t ld;
};

std::vector<LaneResult> run_lanes(const std::string& body, uint64_t a, uint64_t b, uint64_t c) {
  Module module(kernel_of(body));
  Device device;
  uint64_t in = device.allocate(24), out = device.allocate(512);
  uint64_t values[3] = {a, b, c};
  device.copy_in(in, {reinterpret_cast<uint8_t*>(values), 24});
  LaunchConfig config;
  config.kernel = "test";
  config.grid = {1, 1, 1};
  config.block = {32, 1, 1};
  config.params.resize(16);
  std::memcpy(config.params.data(), &in, 8);
  std::memcpy(config.params.data() + 8, &out, 8);
  LaunchResult result = device.launch(module, config);
  EXPECT_TRUE(result.clean()) << body << "\n" << result.text();
  std::vector<uint8_t> bytes(512);
  device.copy_out(out, bytes);
  std::vector<LaneResult> lanes(32);
  for (int i = 0; i < 32; ++i) {
    std::memcpy(&lanes[i].d, bytes.data() + 16 * i, 4);
    std::memcpy(&lanes[i].ld, bytes.data() + 16 * i + 8, 8);
  }
  return lanes;
}

constexpr uint64_t f(float v) { return std::bit_cast<uint32_t>(v); }

const Case kCases[] = {
    // integers
    {"add.s32 d, a, b;", 7, 0xffffffff, 0, 6},
    {"add.sat.s32 d, a, b;", 0x7fffffff, 1, 0, 0x7fffffff},
    {"add.u64 ld, la, lb;", 0xffffffffull, 1, 0, 0x100000000ull, true},
    {"sub.s32 d, a, b;", 3, 5, 0, 0xfffffffe},
    {"add.cc.u32 d, a, b; addc.u32 d, c, 0;", 0xffffffff, 1, 5, 6},
    {"sub.cc.u32 d, a, b; subc.u32 d, c, 0;", 0, 1, 5, 4},
    {"mul.lo.s32 d, a, b;", 0x10001, 0x10001, 0, 0x20001},
    {"mul.hi.u32 d, a, b;", 0x80000000, 6, 0, 3},
    {"mul.hi.s32 d, a, b;", 0xffffffff, 6, 0, 0xffffffff},
    {"mul.wide.u32 ld, a, b;", 0xffffffff, 0xffffffff, 0, 0xfffffffe00000001ull, true},
    {"mul.wide.s32 ld, a, b;", 0xffffffff, 5, 0, 0xfffffffffffffffbull, true},
    {"mad.lo.s32 d, a, b, c;", 3, 4, 5, 17},
    {"mad.wide.u32 ld, a, b, lc;", 0xffffffff, 2, 3, 0x200000001ull, true},
    {"mad.lo.cc.u32 d, a, b, c; madc.hi.u32 d, a, b, 0;", 0x80000000, 2, 0, 1},
    {"mul24.lo.u32 d, a, b;", 0x1000003, 0x2000005, 0, 15},
    {"div.s32 d, a, b;", 0xfffffff9, 2, 0, 0xfffffffd},
    {"div.u32 d, a, b;", 7, 0, 0, 0xffffffff},
    {"rem.s32 d, a, b;", 0xfffffff9, 2, 0, 0xffffffff},
    {"abs.s32 d, a;", 0x80000000, 0, 0, 0x80000000},
    {"neg.s32 d, a;", 5, 0, 0, 0xfffffffb},
    {"min.s32 d, a, b;", 0xffffffff, 1, 0, 0xffffffff},
    {"min.u32 d, a, b;", 0xffffffff, 1, 0, 1},
    {"max.s64 ld, la, lb;", ~0ull, 1, 0, 1, true},
    {"sad.u32 d, a, b, c;", 3, 10, 100, 107},
    {"and.b32 d, a, b;", 0xff00, 0x0ff0, 0, 0x0f00},
    {"or.b32 d, a, b;", 0xff00, 0x0ff0, 0, 0xfff0},
    {"xor.b64 ld, la, lb;", 0xff, 0x0f, 0, 0xf0, true},
    {"not.b32 d, a;", 0xff, 0, 0, 0xffffff00},
    {"cnot.b32 d, a;", 0, 0, 0, 1},
    {"lop3.b32 d, a, b, c, 0x96;", 0xff, 0x0f, 0x3c, 0xff ^ 0x0f ^ 0x3c},
    {"lop3.b32 d, a, b, c, 0xca;", 0xff00, 0x1234, 0x5678, 0x1278},
    {"shl.b32 d, a, b;", 1, 32, 0, 0},
    {"shr.s32 d, a, b;", 0x80000000, 40, 0, 0xffffffff},
    {"shr.u64 ld, la, b;", 0x8000000000000000ull, 63, 0, 1, true},
    {"shf.l.wrap.b32 d, a, b, c;", 0x80000000, 0x1, 33, 3},
    {"shf.r.clamp.b32 d, a, b, c;", 0x12345678, 0x9abcdef0, 40, 0x9abcdef0},
    {"popc.b32 d, a;", 0xf0f0, 0, 0, 8},
    {"clz.b32 d, a;", 0x00010000, 0, 0, 15},
    {"clz.b64 d, la;", 1, 0, 0, 63},
    {"bfind.u32 d, a;", 0x00010000, 0, 0, 16},
    {"bfind.s32 d, a;", 0xffffffff, 0, 0, 0xffffffff},
    {"bfind.shiftamt.u32 d, a;", 0x00010000, 0, 0, 15},
    {"brev.b32 d, a;", 1, 0, 0, 0x80000000},
    {"bfe.u32 d, a, b, c;", 0x12345678, 8, 8, 0x56},
    {"bfe.s32 d, a, b, c;", 0x00008000, 8, 8, 0xffffff80},
    {"bfi.b32 d, a, b, 8, 4;", 0xf, 0x12345078, 0, 0x12345f78},
    {"bmsk.clamp.b32 d, a, b;", 4, 8, 0, 0xff0},
    {"szext.clamp.s32 d, a, b;", 0x80, 8, 0, 0xffffff80},
    {"dp4a.s32.s32 d, a, b, c;", 0x01ff0203, 0x01010101, 10, 15},
    {"dp2a.lo.u32.u32 d, a, b, c;", 0x00020003, 0x00000504, 1, 1 + 3 * 4 + 2 * 5},
    {"prmt.b32 d, a, b, 0x7610;", 0x33221100, 0x77665544, 0, 0x77661100},
    {"prmt.b32.f4e d, a, b, 1;", 0x33221100, 0x77665544, 0, 0x44332211},
    {"prmt.b32 d, a, b, 0x8888;", 0x00000080, 0, 0, 0xffffffff},
    {"add.u16x2 d, a, b;", 0x0001ffff, 0x00010001, 0, 0x00020000},
    {"min.s16x2 d, a, b;", 0x0001ffff, 0xffff0001, 0, 0xffffffff},
    {"add.s16 hd, ha, hb; cvt.u32.u16 d, hd;", 0xffff, 2, 0, 1},
    {"selp.b32 d, a, b, p;", 1, 2, 0, 2},
    {"setp.lt.s32 p, a, b; selp.b32 d, 1, 0, p;", 0xffffffff, 0, 0, 1},
    {"setp.lt.u32 p, a, b; selp.b32 d, 1, 0, p;", 0xffffffff, 0, 0, 0},
    {"setp.hi.u32 p|q, a, b; selp.b32 d, 1, 0, q;", 1, 2, 0, 1},
    {"setp.eq.s32 p, a, a; setp.lt.and.s32 q, a, b, !p; selp.b32 d, 1, 0, q;", 1, 2, 0, 0},
    {"set.lt.u32.s32 d, a, b;", 1, 2, 0, 0xffffffff},
    {"set.gt.f32.s32 d, a, b;", 3, 2, 0, f(1.0f)},
    {"slct.b32.s32 d, a, b, c;", 1, 2, 0x80000000, 2},
    {"setp.ne.s32 p, a, 0; not.pred q, p; xor.pred p, p, q; selp.b32 d, 1, 0, p;", 1, 0, 0, 1},
    // moves
    {"mov.b64 ld, {a, b};", 0x11111111, 0x22222222, 0, 0x2222222211111111ull, true},
    {"mov.b64 {t, d}, la;", 0x2222222211111111ull, 0, 0, 0x22222222},
    {"mov.b64 {_, d}, la;", 0x2222222211111111ull, 0, 0, 0x22222222},
    {"mov.b32 {ha, hb}, a; mov.b32 d, {hb, ha};", 0x12345678, 0, 0, 0x56781234},
    {"mov.b128 x, {la, lb}; mov.b128 {lc, ld}, x;", 1, 2, 0, 2, true},
    {"mov.u64 ld, s; cvt.u32.u64 d, ld;", 0, 0, 0, 0x400},
    // conversions
    {"cvt.s32.s8 d, a;", 0x80, 0, 0, 0xffffff80},
    {"cvt.u64.u32 ld, a;", 0xffffffff, 0, 0, 0xffffffff, true},
    {"cvt.s64.s32 ld, a;", 0xffffffff, 0, 0, ~0ull, true},
    {"cvt.sat.u8.s32 d, a;", 300, 0, 0, 255},
    {"cvt.rn.f32.s32 d, a;", 0xfffffffe, 0, 0, f(-2.0f)},
    {"cvt.rn.f32.u32 d, a;", 0x01000001, 0, 0, f(16777216.0f)},
    {"cvt.rp.f32.u32 d, a;", 0x01000001, 0, 0, f(16777218.0f)},
    {"cvt.rzi.s32.f32 d, a;", f(-2.7f), 0, 0, 0xfffffffe},
    {"cvt.rni.s32.f32 d, a;", f(2.5f), 0, 0, 2},
    {"cvt.rpi.f32.f32 d, a;", f(2.1f), 0, 0, f(3.0f)},
    {"cvt.rzi.u32.f32 d, a;", f(-1.0f), 0, 0, 0},
    {"cvt.rn.f16.f32 hd, a; cvt.u32.u16 d, hd;", f(2049.0f), 0, 0, 0x6800},
    {"cvt.rz.f16.f32 hd, a; cvt.u32.u16 d, hd;", f(2051.0f), 0, 0, 0x6801},
    {"cvt.f32.f16 d, ha;", 0x3c00, 0, 0, f(1.0f)},
    {"cvt.f32.bf16 d, ha;", 0x4049, 0, 0, 0x40490000},
    {"cvt.rn.bf16.f32 hd, a; cvt.u32.u16 d, hd;", 0x3f808000, 0, 0, 0x3f80},
    {"cvt.rn.bf16x2.f32 d, a, b;", f(1.0f), f(2.0f), 0, 0x3f804000},
    {"cvt.rn.f16x2.f32 d, a, b;", f(1.0f), f(2.0f), 0, 0x3c004000},
    {"cvt.rn.relu.f16x2.f32 d, a, b;", f(-1.0f), f(2.0f), 0, 0x00004000},
    {"cvt.rn.satfinite.e4m3x2.f32 hd, a, b; cvt.u32.u16 d, hd;", f(1000.0f), f(1.0f), 0, 0x7e38},
    {"cvt.rn.satfinite.e5m2x2.f32 hd, a, b; cvt.u32.u16 d, hd;", f(1.0f), f(-2.0f), 0, 0x3cc0},
    {"cvt.rn.f16x2.e4m3x2 d, ha;", 0x3830, 0, 0, 0x3c003800},
    {"cvt.rna.tf32.f32 d, a;", 0x3f801000, 0, 0, 0x3f802000},
    {"cvt.rn.f64.s32 ld, a;", 3, 0, 0, 0x4008000000000000ull, true},
    // floating point
    {"add.f32 d, a, b;", f(1.5f), f(2.25f), 0, f(3.75f)},
    {"add.rz.f32 d, a, b;", f(16777216.0f), f(1.5f), 0, f(16777216.0f)},
    {"add.rp.f32 d, a, b;", f(16777216.0f), f(0.5f), 0, f(16777218.0f)},
    {"add.ftz.f32 d, a, b;", 1, 0, 0, 0},
    {"add.sat.f32 d, a, b;", f(0.75f), f(0.75f), 0, f(1.0f)},
    {"sub.f32 d, a, b;", f(1.0f), f(3.0f), 0, f(-2.0f)},
    {"mul.f32 d, a, b;", f(3.0f), f(-2.0f), 0, f(-6.0f)},
    {"fma.rn.f32 d, a, b, c;", f(16777217.0f), f(1.0f), f(1.0f), f(16777216.0f) + 0},
    {"fma.rn.f32 d, a, b, c;", f(4097.0f), f(4097.0f), f(-16785408.0f), f(1.0f)},
    {"add.f32 d, a, b;", 0x7f800000, 0xff800000, 0, 0x7fffffff},
    {"div.rn.f32 d, a, b;", f(1.0f), f(4.0f), 0, f(0.25f)},
    {"rcp.rn.f32 d, a;", f(8.0f), 0, 0, f(0.125f)},
    {"sqrt.rn.f32 d, a;", f(9.0f), 0, 0, f(3.0f)},
    {"rsqrt.approx.f32 d, a;", f(16.0f), 0, 0, f(0.25f)},
    {"ex2.approx.f32 d, a;", f(3.0f), 0, 0, f(8.0f)},
    {"lg2.approx.f32 d, a;", f(8.0f), 0, 0, f(3.0f)},
    {"min.f32 d, a, b;", f(1.0f), 0x7fc00000, 0, f(1.0f)},
    {"min.NaN.f32 d, a, b;", f(1.0f), 0x7fc00000, 0, 0x7fffffff},
    {"max.f32 d, a, b;", f(-0.0f), f(0.0f), 0, f(0.0f)},
    {"max.f32 d, a, b, c;", f(1.0f), f(5.0f), f(3.0f), f(5.0f)},
    {"abs.f32 d, a;", f(-2.0f), 0, 0, f(2.0f)},
    {"neg.f32 d, a;", f(2.0f), 0, 0, f(-2.0f)},
    {"copysign.f32 d, a, b;", f(-1.0f), f(3.0f), 0, f(-3.0f)},
    {"testp.subnormal.f32 p, a; selp.b32 d, 1, 0, p;", 1, 0, 0, 1},
    {"setp.gtu.f32 p, a, b; selp.b32 d, 1, 0, p;", 0x7fc00000, f(1.0f), 0, 1},
    {"setp.neu.f32 p, a, b; selp.b32 d, 1, 0, p;", f(1.0f), f(1.0f), 0, 0},
    {"add.f64 ld, la, lb;", 0x3ff0000000000000ull, 0x3ff0000000000000ull, 0, 0x4000000000000000ull, true},
    {"add.f16x2 d, a, b;", 0x3c003c00, 0x3c004000, 0, 0x40004200},
    {"fma.rn.f16x2 d, a, b, c;", 0x40003c00, 0x42003c00, 0x3c003c00, 0x47004000},
    {"fma.rn.bf16x2 d, a, b, c;", 0x40003f80, 0x40403f80, 0x3f803f80, 0x40e04000},
    {"mul.bf16x2 d, a, b;", 0x40003f80, 0x40403f80, 0, 0x40c03f80},
    {"max.f16x2 d, a, b;", 0x3c00bc00, 0x40003c00, 0, 0x40003c00},
    {"setp.gt.f16x2 p|q, a, b; selp.b32 d, 1, 0, q;", 0x40003c00, 0x3c004000, 0, 1},
    {"fma.rn.f32x2 ld, la, lb, lc;", 0x400000003f800000ull, 0x4000000040000000ull, 0x3f8000003f800000ull,
     0x40a0000040400000ull, true},
    {"add.rn.f32x2 ld, la, lb;", 0x400000003f800000ull, 0x4000000040000000ull, 0, 0x4080000040400000ull,
     true},
    // memory
    {"st.shared.u32 [s], a; ld.shared.u16 d, [s+2];", 0x12345678, 0, 0, 0x1234},
    {"st.shared.v2.u32 [s+8], {a, b}; ld.shared.u64 ld, [s+8];", 1, 2, 0, 0x200000001ull, true},
    {"st.shared.u8 [s], a; ld.shared.s8 d, [s];", 0x80, 0, 0, 0xffffff80},
    {"mov.b128 x, {la, lb}; st.shared.b128 [s], x; ld.shared.u64 ld, [s+8];", 1, 2, 0, 2, true},
    {"st.local.u32 [l+4], a; mov.u64 lb, l; cvta.local.u64 lb, lb; ld.u32 d, [lb+4];", 77, 0, 0, 77},
    {"mov.u64 lb, s; cvta.shared.u64 lb, lb; st.u32 [lb], a; ld.shared.u32 d, [s];", 78, 0, 0, 78},
    {"mov.u64 lb, s; cvta.shared.u64 lb, lb; isspacep.shared p, lb; selp.b32 d, 1, 0, p;", 0, 0, 0, 1},
    {"isspacep.global p, pout; selp.b32 d, 1, 0, p;", 0, 0, 0, 1},
    {"mov.u64 lb, in; cvta.param.u64 lb, lb; ld.u64 lc, [lb]; ld.global.u32 d, [lc+8];", 1, 99, 0, 99},
    {"ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {t, d}, [pin];", 0x500000006ull, 0, 0, 5},
    {"ld.global.v4.b32 {t, u, _, d}, [pin];", 1, 0x900000000ull, 0, 9},
    {"prefetch.global.L2 [pin]; mov.u32 d, 1;", 0, 0, 0, 1},
    // control
    {"{ .reg .pred z; setp.eq.s32 z, a, 0; @z bra OUT; mov.u32 d, 5; OUT: }", 1, 0, 0, 5},
    {"mov.u32 d, 0; LOOP: add.u32 d, d, 3; add.s32 a, a, -1; setp.ne.s32 p, a, 0; @p bra LOOP;", 4, 0, 0, 12},
    {"T: .branchtargets L0, L1; brx.idx a, T; L0: mov.u32 d, 10; bra END; L1: mov.u32 d, 11; END:", 1, 0, 0,
     11},
    {"createpolicy.fractional.L2::evict_first.b64 lb, 1.0; mov.u32 d, 1;", 0, 0, 0, 1},
    {"setp.lt.u32 p, lane, 16; @p bra H; mov.u32 d, 1; H: @!p bra E; mov.u32 d, 2; E:", 0, 0, 0, 2},
};

TEST(Instructions, Cases) {
  for (const Case& c : kCases) {
    LaneResult r{};
    try {
      r = run_lanes(c.body, c.a, c.b, c.c)[0];
    } catch (const PtxError& error) {
      ADD_FAILURE() << c.body << ": " << error.what();
      continue;
    }
    uint64_t got = c.wide ? r.ld : r.d;
    EXPECT_EQ(got, c.want) << std::hex << c.body << " gave 0x" << got << ", want 0x" << c.want;
  }
}

/// Lane by lane.
void expect_lanes(const std::string& body, uint64_t a, uint64_t b, uint64_t c, auto want) {
  auto r = run_lanes(body, a, b, c);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(r[lane].d, static_cast<uint32_t>(want(lane))) << body << " lane " << lane;
}

TEST(Instructions, Warp) {
  expect_lanes("shfl.sync.bfly.b32 d, lane, 1, 31, -1;", 0, 0, 0, [](uint32_t l) { return l ^ 1; });
  expect_lanes("shfl.sync.up.b32 d|p, lane, 1, 0, -1;", 0, 0, 0, [](uint32_t l) { return l ? l - 1 : 0; });
  expect_lanes("shfl.sync.down.b32 d|p, lane, 2, 31, -1; selp.b32 d, 1, 0, p;", 0, 0, 0,
               [](uint32_t l) { return l < 30; });
  expect_lanes("shfl.sync.idx.b32 d, lane, a, 31, -1;", 5, 0, 0, [](uint32_t) { return 5; });
  // Segments of 8: c = (32 - 8) << 8 | 31.
  expect_lanes("shfl.sync.idx.b32 d, lane, 3, 6175, -1;", 0, 0, 0, [](uint32_t l) { return (l & ~7u) + 3; });
  expect_lanes("setp.lt.u32 p, lane, 5; vote.sync.ballot.b32 d, p, -1;", 0, 0, 0,
               [](uint32_t) { return 31; });
  expect_lanes("setp.lt.u32 p, lane, 5; vote.sync.any.pred q, p, -1; selp.b32 d, 1, 0, q;", 0, 0, 0,
               [](uint32_t) { return 1; });
  expect_lanes("setp.lt.u32 p, lane, 5; vote.sync.all.pred q, p, -1; selp.b32 d, 1, 0, q;", 0, 0, 0,
               [](uint32_t) { return 0; });
  expect_lanes("and.b32 t, lane, 3; match.any.sync.b32 d, t, -1;", 0, 0, 0,
               [](uint32_t l) { return 0x11111111u << (l & 3); });
  expect_lanes("match.all.sync.b32 d|p, a, -1;", 4, 0, 0, [](uint32_t) { return 0xffffffff; });
  expect_lanes("redux.sync.add.s32 d, lane, -1;", 0, 0, 0, [](uint32_t) { return 496; });
  expect_lanes("redux.sync.max.u32 d, lane, -1;", 0, 0, 0, [](uint32_t) { return 31; });
  expect_lanes("elect.sync d|p, -1; selp.b32 d, 1, 0, p;", 0, 0, 0, [](uint32_t l) { return l == 0; });
  expect_lanes(
      "setp.lt.u32 p, lane, 8; @p bra L; { .reg .pred z; elect.sync d|z, 0xffffff00; selp.b32 d, 9, d, z; } "
      "L:",
      0, 0, 0, [](uint32_t l) { return l < 8    ? 0xdeadbeef
                                       : l == 8 ? 9
                                                : 8; });
  expect_lanes("setp.lt.u32 p, lane, 8; @!p bra L; activemask.b32 d; L: bar.warp.sync -1;", 0, 0, 0,
               [](uint32_t l) { return l < 8 ? 0xff : 0xdeadbeef; });
  expect_lanes("mov.u32 d, %lanemask_lt;", 0, 0, 0, [](uint32_t l) { return (1u << l) - 1; });
}

TEST(Instructions, Atomics) {
  expect_lanes(
      "st.shared.u32 [s], 0; bar.warp.sync -1; atom.shared.add.u32 t, [s], 1; bar.warp.sync -1; "
      "ld.shared.u32 d, [s];",
      0, 0, 0, [](uint32_t) { return 32; });
  expect_lanes("atom.global.max.s32 t, [pin], lane; bar.warp.sync -1; ld.global.u32 d, [pin];", 3, 0, 0,
               [](uint32_t) { return 31; });
  expect_lanes("red.global.add.f32 [pin], b; bar.warp.sync -1; ld.global.u32 d, [pin];", f(1.0f), f(0.5f), 0,
               [](uint32_t) { return f(17.0f); });
  expect_lanes("atom.global.cas.b32 t, [pin], a, 9; bar.warp.sync -1; ld.global.u32 d, [pin];", 5, 0, 0,
               [](uint32_t) { return 9; });
  expect_lanes("red.global.add.noftz.f16x2 [pin], b; bar.warp.sync -1; ld.global.u32 d, [pin];", 0,
               0x3c004000, 0, [](uint32_t) { return 0x50005400; });
  expect_lanes("atom.global.inc.u32 t, [pin], 3; bar.warp.sync -1; ld.global.u32 d, [pin];", 0, 0, 0,
               [](uint32_t) { return 0; });
}

TEST(Instructions, MatrixMoves) {
  // Row r of an 8x8 matrix holds 16 r + column; lane l receives row l / 4, columns 2 (l % 4) and the next.
  const std::string fill =
      "setp.lt.u32 p, lane, 8; shl.b32 t, lane, 4; mov.u64 lb, s; cvt.u32.u64 u, lb; add.u32 u, u, t;"
      "mul.lo.u32 c, t, 0x10001; add.u32 c, c, 0x10000;"
      "@p st.shared.u32 [u], c; add.u32 c, c, 0x20002; @p st.shared.u32 [u+4], c; add.u32 c, c, 0x20002; @p "
      "st.shared.u32 [u+8], c;"
      "add.u32 c, c, 0x20002; @p st.shared.u32 [u+12], c; bar.warp.sync -1; and.b32 t, lane, 7; shl.b32 t, "
      "t, 4; mov.u64 lb, s;"
      "cvt.u32.u64 u, lb; add.u32 u, u, t;";
  expect_lanes(fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {d}, [u];", 0, 0, 0, [](uint32_t l) {
    uint32_t v = 16 * (l / 4) + 2 * (l % 4);
    return v | (v + 1) << 16;
  });
  expect_lanes(fill + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {d}, [u];", 0, 0, 0, [](uint32_t l) {
    uint32_t v = 16 * (2 * (l % 4)) + l / 4;
    return v | (v + 16) << 16;
  });
  expect_lanes(
      fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {d}, [u]; movmatrix.sync.aligned.m8n8.trans.b16 d, d;",
      0, 0, 0, [](uint32_t l) {
        uint32_t v = 16 * (2 * (l % 4)) + l / 4;
        return v | (v + 16) << 16;
      });
  expect_lanes(fill +
                   "stmatrix.sync.aligned.m8n8.x1.shared.b16 [u], {lane}; bar.warp.sync -1; and.b32 t, lane, "
                   "7; shl.b32 t, t, 4;"
                   "ld.shared.u16 d, [u+4];",
               0, 0, 0, [](uint32_t l) { return 4 * (l & 7) + 1; });
}

TEST(Instructions, UnknownOnesAreRefusedWithLineAndText) {
  auto message = [](const std::string& body) -> std::string {
    try {
      Module module(kernel_of(body));
    } catch (const PtxError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("add.foo.s32 d, a, b;"), "line 22: unknown qualifier '.foo' in 'add.foo.s32 d, a, b;'");
  EXPECT_EQ(message("setp.lt.b32 p, a, b;"),
            "line 22: this combination of qualifiers is not accepted in 'setp.lt.b32 p, a, b;'");
  EXPECT_EQ(message("frobnicate.b32 d, a;"),
            "line 22: unknown instruction 'frobnicate' in 'frobnicate.b32 d, a;'");
  EXPECT_EQ(message("add.s32 d, a, nix;"), "line 22: unknown name 'nix' in 'add.s32 d, a, nix;'");
  EXPECT_EQ(message("add.s32 d, la, b;"), "line 22: operand 'la' has the wrong size in 'add.s32 d, la, b;'");
  EXPECT_EQ(message("add.s32 d, a;"), "line 22: wrong number of operands in 'add.s32 d, a;'");
  EXPECT_EQ(message("bra NOWHERE;"), "line 22: unknown label 'NOWHERE' in 'bra NOWHERE;'");
  EXPECT_NE(message("tcgen05.mma.cta_group::1.kind::mxf4.block_scale [a], la, lb, c, [d], [d], p;")
                .find("block-scaled"),
            std::string::npos);
  EXPECT_NE(message("wgmma.fence.sync.aligned;").find("sm_90a only"), std::string::npos);
}

}  // namespace
}  // namespace gemmtune::emulator
