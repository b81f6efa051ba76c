// Forms that sm_100a has and sm_90a has not, one by one: pairs of f32, redux of f32, 256-bit accesses, launch
// control, the collector hints of tcgen05.mma. Expected values were worked out by hand.
#include <gtest/gtest.h>

#include <bit>

#include "tests/emulator/form_expansion.h"
#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

/// One warp, two 64-bit operands a lane set for all; returns lane 0's 64-bit result.
uint64_t run_pair(const std::string& instruction, uint64_t a, uint64_t b, uint64_t c) {
  PtxRun run;
  run.target = "sm_100a";
  run.params = ".param .u64 out, .param .u64 a_param, .param .u64 b_param, .param .u64 c_param";
  run.body =
      ".reg .b64 o, a, b, c, d; ld.param.u64 o, [out]; ld.param.u64 a, [a_param]; ld.param.u64 b, [b_param]; "
      "ld.param.u64 c, [c_param];\n" +
      instruction + "\nst.global.u64 [o], d;";
  Device device;
  uint64_t out = device.allocate(8);
  LaunchResult r = run.run(device, {out, a, b, c});
  EXPECT_TRUE(r.clean()) << instruction << "\n" << r.text();
  return read_buffer<uint64_t>(device, out, 1)[0];
}

uint64_t pair(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

constexpr uint32_t kOne = 0x3f800000, kMinusOne = 0xbf800000, kUlp = 0x3f800001, kMinusUlp = 0xbf800001;
constexpr uint32_t kHalfUlp = 0x33800000;  ///< 2^-24, half of what follows 1

TEST(PairsOfF32, RoundInEachDirection) {
  // Lower half: 1 and half an ulp of it. Upper half: the same, negative.
  struct Row {
    const char* rounding;
    uint32_t low, high;
  };
  for (Row r : {Row{"", kOne, kMinusOne},
                {".rn", kOne, kMinusOne},
                {".rz", kOne, kMinusOne},
                {".rm", kOne, kMinusUlp},
                {".rp", kUlp, kMinusOne}}) {
    uint64_t one = pair(kOne, kMinusOne), half = pair(kHalfUlp, kHalfUlp | 1u << 31),
             want = pair(r.low, r.high);
    std::string q = std::string(r.rounding) + ".f32x2 d, a, b;",
                ftz = std::string(r.rounding) + ".ftz.f32x2 d, a, b;";
    EXPECT_EQ(run_pair("add" + q, one, half, 0), want) << r.rounding;
    EXPECT_EQ(run_pair("add" + ftz, one, half, 0), want) << r.rounding;
    EXPECT_EQ(run_pair("sub" + q, one, half ^ 0x8000000080000000ull, 0), want) << r.rounding;
    EXPECT_EQ(run_pair("sub" + ftz, one, half ^ 0x8000000080000000ull, 0), want) << r.rounding;
  }
  // (1 + u)(1 + u) = 1 + 2u + u^2, and the same negative.
  for (Row r : {Row{"", 0x3f800002, 0xbf800002},
                {".rn", 0x3f800002, 0xbf800002},
                {".rz", 0x3f800002, 0xbf800002},
                {".rm", 0x3f800002, 0xbf800003},
                {".rp", 0x3f800003, 0xbf800002}}) {
    uint64_t a = pair(kUlp, kMinusUlp), b = pair(kUlp, kUlp), want = pair(r.low, r.high);
    EXPECT_EQ(run_pair("mul" + std::string(r.rounding) + ".f32x2 d, a, b;", a, b, 0), want) << r.rounding;
    if (r.rounding[0] == 0) continue;
    EXPECT_EQ(run_pair("fma" + std::string(r.rounding) + ".f32x2 d, a, b, c;", a, b, 0), want) << r.rounding;
    EXPECT_EQ(run_pair("fma" + std::string(r.rounding) + ".ftz.f32x2 d, a, b, c;", a, b, 0), want)
        << r.rounding;
  }
}

TEST(PairsOfF32, FlushSubnormals) {
  uint64_t tiny = pair(1, 0x80000001), zero = 0, smallest = pair(0x00800000, 0x80800000),
           half = pair(0x3f000000, 0x3f000000);
  EXPECT_EQ(run_pair("add.f32x2 d, a, b;", tiny, zero, 0), pair(1, 0x80000001));
  EXPECT_EQ(run_pair("add.ftz.f32x2 d, a, b;", tiny, pair(0, 0x80000000), 0), pair(0, 0x80000000));
  EXPECT_EQ(run_pair("mul.f32x2 d, a, b;", smallest, half, 0), pair(0x00400000, 0x80400000));
  EXPECT_EQ(run_pair("mul.ftz.f32x2 d, a, b;", smallest, half, 0), pair(0, 0x80000000));
  EXPECT_EQ(run_pair("fma.rn.ftz.f32x2 d, a, b, c;", smallest, half, pair(1, 0x80000001)),
            pair(0, 0x80000000));
}

/// One result word a lane.
std::vector<uint32_t> run_lanes(const std::string& body) {
  PtxRun run;
  run.target = "sm_100a";
  run.params = ".param .u64 out";
  run.body =
      ".reg .b64 o, x; .reg .b32 lane, d, v; .reg .pred p; ld.param.u64 o, [out]; mov.u32 lane, %laneid;\n" +
      body + "\nmul.wide.u32 x, lane, 4; add.u64 o, o, x; st.global.u32 [o], d;";
  Device device;
  uint64_t out = device.allocate(128);
  LaunchResult r = run.run(device, {out});
  EXPECT_TRUE(r.clean()) << body << "\n" << r.text();
  return read_buffer<uint32_t>(device, out, 32);
}

TEST(Redux, SmallestAndLargestFloats) {
  // Lane l holds l - 20.5; lane 3 holds NaN where `nan`.
  auto reduce = [](const std::string& qualifiers, bool nan) {
    auto lanes = run_lanes("cvt.rn.f32.u32 v, lane; add.f32 v, v, 0fC1A40000; setp.eq.u32 p, lane, " +
                           std::string(nan ? "3" : "99") + "; selp.b32 v, 0x7fc00000, v, p;\nredux.sync." +
                           qualifiers + ".f32 d, v, -1;");
    for (uint32_t v : lanes) EXPECT_EQ(v, lanes[0]) << qualifiers;
    return lanes[0];
  };
  auto f = [](float v) { return std::bit_cast<uint32_t>(v); };
  EXPECT_EQ(reduce("min", true), f(-20.5f));
  EXPECT_EQ(reduce("max", true), f(10.5f));
  EXPECT_EQ(reduce("min.abs", true), f(0.5f));
  EXPECT_EQ(reduce("max.abs", true), f(20.5f));
  EXPECT_EQ(reduce("min.NaN", true), 0x7fffffffu);
  EXPECT_EQ(reduce("max.NaN", true), 0x7fffffffu);
  EXPECT_EQ(reduce("min.abs.NaN", false), f(0.5f));
  EXPECT_EQ(reduce("max.abs.NaN", false), f(20.5f));
}

TEST(WideAccesses, EightWordsAtOnce) {
  for (std::string_view type :
       {"v8.b32", "v8.u32", "v8.s32", "v8.f32", "v4.b64", "v4.u64", "v4.s64", "v4.f64"})
    for (const char* nc : {"", ".nc"}) {
      bool wide = type[1] == '4';
      std::string list = register_list("r", wide ? 4 : 8);
      PtxRun run;
      run.target = "sm_100a";
      run.params = ".param .u64 in, .param .u64 out";
      run.body = std::string(".reg .b64 i, o, x; .reg .b32 lane; .reg .") + (wide ? "b64" : "b32") +
                 " r<8>; ld.param.u64 i, [in]; ld.param.u64 o, [out]; mov.u32 lane, %laneid; mul.wide.u32 x, "
                 "lane, 32; "
                 "add.u64 i, i, x; add.u64 o, o, x;\nld.global" +
                 nc + "." + std::string(type) + " " + list + ", [i]; " +
                 (*nc ? "st.relaxed.cta.global.L1::no_allocate." : "st.global.") + std::string(type) +
                 " [o], " + list + ";";
      std::vector<uint32_t> data(256);
      for (uint32_t i = 0; i < 256; ++i) data[i] = i * 2654435761u;
      Device device;
      uint64_t out = device.allocate(1024);
      LaunchResult r = run.run(device, {make_buffer(device, data), out});
      ASSERT_TRUE(r.clean()) << type << "\n" << r.text();
      EXPECT_EQ(read_buffer<uint32_t>(device, out, 256), data) << type << nc;
    }
}

/// A grid of 3 x 2 x 2 tiles, clusters of one, one resident CTA: it takes the other eleven over, in order.
TEST(LaunchControl, EveryWayToAskAndToRead) {
  for (const std::string& form : forms_of("clusterlaunchcontrol.try_cancel")) {
    PtxRun run;
    run.target = "sm_100a";
    run.params = ".param .u64 out";
    run.grid = {3, 2, 2};
    run.smem_bytes = 64;
    run.sm_count = 1;
    run.body = R"(
  .reg .b64 o, g, gb; .reg .b32 s, bar, tid, phase, x, y, z, r<4>; .reg .b128 resp; .reg .pred first, p; .shared .align 8 .b64 b;
  ld.param.u64 o, [out]; mov.u32 s, raw; mov.u32 bar, b; mov.u32 tid, %tid.x; mov.u32 phase, 0; setp.eq.u32 first, tid, 0;
  cvt.u64.u32 g, s; cvta.shared.u64 g, g; cvt.u64.u32 gb, bar; cvta.shared.u64 gb, gb;
  @first mbarrier.init.shared::cta.b64 [bar], 1; @first fence.mbarrier_init.release.cluster; bar.sync 0;
NEXT: @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  @first )" + form +
               (has_qualifier(form, "shared::cta") ? " [s], [bar];" : " [g], [gb];") +
               R"(
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], phase; @!p bra A;
  xor.b32 phase, phase, 1; ld.shared.b128 resp, [s]; fence.proxy.async.shared::cta; bar.sync 0;
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, resp; @!p bra DONE;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 x, resp;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 y, resp;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 z, resp;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {r0, r1, r2, _}, resp;
  mad.lo.u32 x, y, 16, x; mad.lo.u32 x, z, 256, x; mad.lo.u32 r0, r1, 16, r0; mad.lo.u32 r0, r2, 256, r0;
  @first st.global.v2.u32 [o], {x, r0}; add.u64 o, o, 8; bra NEXT;
DONE:)";
    Device device;
    uint64_t out = device.allocate(96);
    LaunchResult r = run.run(device, {out});
    ASSERT_TRUE(r.clean()) << form << "\n" << r.text();
    std::vector<uint32_t> want;
    for (uint32_t i = 1; i < 12; ++i) want.insert(want.end(), 2, i % 3 + i / 3 % 2 * 16 + i / 6 * 256);
    EXPECT_EQ(read_buffer<uint32_t>(device, out, 22), want) << form;
  }
}

TEST(Trap, IsNamed) {
  PtxRun run;
  run.body = "trap;";
  Device device;
  LaunchResult r = run.run(device, {});
  EXPECT_FALSE(r.completed);
  EXPECT_NE(r.text().find("the kernel executed trap"), std::string::npos) << r.text();
}

}  // namespace
}  // namespace gemmtune::emulator
