// Asynchronous copies: tensor boxes against a host model of ptx-facts 1.3 and 3, bulk copies, cp.async,
// multicast.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

const Schedule kAll[] = {{SchedulePolicy::eager, 0}, {SchedulePolicy::lazy, 0}, {SchedulePolicy::random, 5}};

/// Lane 0 loads one box to raw+offset, then the warp copies `bytes` of shared memory to out.
std::string load_body(int rank, const std::string& offset) {
  std::string coordinates = "{c0";
  for (int i = 1; i < rank; ++i) coordinates += ", c" + std::to_string(i);
  coordinates += "}";
  return R"(
  .reg .b64 out, map, at; .reg .b32 s, bar, dst, c0, c1, c2, c3, c4, tx, bytes, lane, v, i, size; .reg .pred p, first;
  .shared .align 8 .b64 barrier;
  ld.param.u64 out, [out_param]; ld.param.u32 tx, [tx_param]; ld.param.u32 size, [size_param];
  ld.param.u32 c0, [x]; ld.param.u32 c1, [y]; mov.u32 c2, 0; mov.u32 c3, 0; mov.u32 c4, 0;
  mov.u64 map, map_param; cvta.param.u64 map, map;
  mov.u32 lane, %laneid; mov.u32 bar, barrier; mov.u32 s, raw; add.u32 dst, s, )" +
         offset + R"(;
  setp.eq.u32 first, lane, 0;
  mov.u32 i, lane; shl.b32 i, i, 2; mov.u32 v, 0x55555555;
FILL: setp.lt.u32 p, i, size; @!p bra FILLED; add.u32 tx, tx, 0; { .reg .b32 t; add.u32 t, s, i; st.shared.u32 [t], v; } add.u32 i, i, 128; bra FILL;
FILLED: fence.proxy.async.shared::cta; bar.sync 0;
  @!first bra WAIT;
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], tx;
  { .reg .b64 policy; mov.u64 policy, 0;
  cp.async.bulk.prefetch.tensor.)" +
         std::to_string(rank) + "d.L2.global.tile.L2::cache_hint [map, " + coordinates +
         R"(], policy; }
  cp.async.bulk.tensor.)" +
         std::to_string(rank) + "d.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [map, " +
         coordinates + R"(], [bar];
WAIT: bar.sync 0;
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra AGAIN;
  mov.u32 i, lane; shl.b32 i, i, 2;
DUMP: setp.lt.u32 p, i, size; @!p bra DONE; { .reg .b32 t; .reg .b64 o; add.u32 t, s, i; ld.shared.u32 v, [t]; cvt.u64.u32 o, i; add.u64 o, o, out; st.global.u32 [o], v; }
  add.u32 i, i, 128; bra DUMP;
DONE:)";
}

struct Box {
  int rank = 2;
  TensorMap map;
  int32_t x = 0, y = 0;
  uint32_t offset = 0;
};

/// What shared memory must hold, byte by byte, and the bytes that complete_tx counts.
std::vector<uint8_t> expected(const Box& b, const std::vector<uint8_t>& tensor, size_t size, uint32_t* tx) {
  std::vector<uint8_t> out(size, 0x55);
  uint32_t element = static_cast<uint32_t>(element_bits(b.map.type)) / 8;
  uint32_t inner = b.map.box[0] * element;
  uint32_t pitch = std::max<uint32_t>(inner, static_cast<uint32_t>(swizzle_span(b.map.swizzle)));
  uint32_t rows = b.rank > 1 ? (b.map.box[1] + b.map.element_strides[1] - 1) / b.map.element_strides[1] : 1;
  *tx = rows * inner;
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t i = 0; i < b.map.box[0]; ++i) {
      int64_t gx = int64_t{b.x} + i, gy = b.rank > 1 ? int64_t{b.y} + r * b.map.element_strides[1] : 0;
      bool inside = gx >= 0 && gx < static_cast<int64_t>(b.map.dims[0]) && gy >= 0 &&
                    (b.rank == 1 || gy < static_cast<int64_t>(b.map.dims[1]));
      for (uint32_t byte = 0; byte < element; ++byte) {
        uint8_t v = b.map.nan_fill ? (byte % 2 ? 0x7f : 0xf7) : 0;
        if (inside)
          v = tensor[static_cast<size_t>(gy) * b.map.strides_bytes[0] + static_cast<size_t>(gx) * element +
                     byte];
        // The base is offset 0x400 of the CTA; the XOR is on absolute bits.
        uint32_t at =
            swizzle_address(b.map.swizzle, 0x400 + 1024 + b.offset + r * pitch + i * element + byte) - 0x800;
        if (b.map.swizzle == TensorSwizzle::none) at = b.offset + r * pitch + i * element + byte;
        out[at] = v;
      }
    }
  return out;
}

void check_box(Box b) {
  for (const Schedule& schedule : kAll) {
    Device device;
    std::vector<uint8_t> tensor(
        static_cast<size_t>(b.rank > 1 ? b.map.strides_bytes[0] * b.map.dims[1] : b.map.dims[0] * 4));
    for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<uint8_t>(i * 37 + i / 256);
    b.map.address = make_buffer(device, tensor);
    size_t size = 8192;
    uint64_t out = device.allocate(size);
    uint32_t tx;
    std::vector<uint8_t> want = expected(b, tensor, size, &tx);
    PtxRun run;
    run.params =
        ".param .u64 out_param, .param .u32 tx_param, .param .u32 size_param, .param .u32 x, .param .u32 y, "
        ".param .align 64 .b8 map_param[128]";
    // Static memory (the barrier) comes first, the dynamic part at the next multiple of 1024.
    run.body = load_body(b.rank, std::to_string(b.offset));
    run.smem_bytes = static_cast<uint32_t>(size);
    run.schedule = schedule;
    LaunchResult r =
        run.run(device, {out, tx, static_cast<uint32_t>(size), b.x, b.y, encode_tensor_map(b.map)});
    ASSERT_TRUE(r.clean()) << r.text();
    auto got = read_buffer<uint8_t>(device, out, size);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(got[i], want[i]) << "byte " << i;
  }
}

Box plain_box() {
  Box b;
  b.map.type = TensorType::bf16;
  b.map.dims = {100, 20};
  b.map.strides_bytes = {208};
  b.map.box = {64, 8};
  return b;
}

TEST(TensorLoad, EverySwizzle) {
  for (auto [swizzle, inner] : {std::pair{TensorSwizzle::none, 64u},
                                {TensorSwizzle::b32, 16u},
                                {TensorSwizzle::b64, 32u},
                                {TensorSwizzle::b128, 64u}}) {
    Box b = plain_box();
    b.map.swizzle = swizzle;
    b.map.box[0] = inner;
    check_box(b);
  }
}

TEST(TensorLoad, DestinationOffThePattern) {
  Box b = plain_box();
  b.map.swizzle = TensorSwizzle::b128;
  b.offset = 384;
  check_box(b);
}

TEST(TensorLoad, NarrowSwizzledRowsHaveTheSpanAsPitch) {
  Box b = plain_box();
  b.map.swizzle = TensorSwizzle::b128;
  b.map.box[0] = 24;
  check_box(b);
}

TEST(TensorLoad, OutsideIsFilled) {
  for (auto [x, y] : {std::pair{64, 16}, {-16, -3}, {96, 0}, {104, 0}, {0, 100}, {-640, 5}}) {
    Box b = plain_box();
    b.x = x;
    b.y = y;
    check_box(b);
    b.map.nan_fill = true;
    check_box(b);
  }
}

TEST(TensorLoad, ElementStridesPack) {
  Box b = plain_box();
  b.map.element_strides[1] = 3;
  check_box(b);
}

TEST(TensorLoad, OtherTypesAndRankOne) {
  Box b = plain_box();
  b.map.type = TensorType::u8;
  b.map.dims[0] = 200;
  b.x = 160;
  check_box(b);
  b.map.type = TensorType::f32;
  b.map.dims[0] = 50;
  b.map.box[0] = 32;
  b.x = 32;
  check_box(b);
  Box one;
  one.rank = 1;
  one.map.rank = 1;
  one.map.type = TensorType::s32;
  one.map.dims = {100};
  one.map.box = {64};
  one.x = 60;
  check_box(one);
}

TEST(TensorLoad, TrapsAsMeasured) {
  auto message = [](auto change, uint32_t offset = 0) {
    Box b = plain_box();
    change(b);
    Device device;
    b.map.address = device.allocate(65536);
    PtxRun run;
    run.params =
        ".param .u64 out_param, .param .u32 tx_param, .param .u32 size_param, .param .u32 x, .param .u32 y, "
        ".param .align 64 .b8 map_param[128]";
    run.body = load_body(2, std::to_string(offset));
    run.smem_bytes = 8192;
    LaunchResult r = run.run(
        device, {device.allocate(8192), uint32_t{1024}, uint32_t{8192}, b.x, b.y, encode_tensor_map(b.map)});
    return r.text();
  };
  EXPECT_NE(message([](Box& b) { b.x = 4; }).find("is not a multiple of 16 bytes"), std::string::npos);
  EXPECT_NE(message([](Box&) {}, 64).find("is not aligned to 128 bytes"), std::string::npos);
  EXPECT_NE(message([](Box&) {}, 8064).find("lie outside"), std::string::npos);
  EXPECT_NE(message([](Box& b) { b.map.box[1] = 4; }).find("512 transaction bytes are missing"),
            std::string::npos);
}

TEST(TensorLoad, ConvertsToTf32) {
  Device device;
  std::vector<uint32_t> tensor = {0x3f801000, 0x3f803000, 0x7fc00000, 0x7f7fffff};
  TensorMap map;
  map.type = TensorType::tf32;
  map.rank = 1;
  map.dims = {4};
  map.box = {4};
  map.address = make_buffer(device, tensor);
  PtxRun run;
  run.params =
      ".param .u64 out_param, .param .u32 tx_param, .param .u32 size_param, .param .u32 x, .param .u32 y, "
      ".param .align 64 .b8 map_param[128]";
  run.body = load_body(1, "0");
  run.smem_bytes = 1024;
  uint64_t out = device.allocate(1024);
  ASSERT_TRUE(run.run(device, {out, uint32_t{16}, uint32_t{1024}, 0, 0, encode_tensor_map(map)}).clean());
  auto got = read_buffer<uint32_t>(device, out, 4);
  EXPECT_EQ(got, (std::vector<uint32_t>{0x3f800000, 0x3f804000, 0x7fffe000, 0x7f800000}));
}

/// Fills shared memory with lane-wise words and stores one box of 16 x 4 f32.
LaunchResult store_box(Device& device, TensorMap map, int32_t x, int32_t y, const std::string& op,
                       const Schedule& schedule) {
  PtxRun run;
  run.params = ".param .u64 out_param, .param .u32 x, .param .u32 y, .param .align 64 .b8 map_param[128]";
  run.body = R"(
  .reg .b64 map; .reg .b32 s, c0, c1, lane, i, v, t; .reg .pred first, p;
  ld.param.u32 c0, [x]; ld.param.u32 c1, [y]; mov.u64 map, map_param; cvta.param.u64 map, map;
  mov.u32 lane, %laneid; mov.u32 s, raw; setp.eq.u32 first, lane, 0; mov.u32 i, lane;
F: setp.lt.u32 p, i, 64; @!p bra E; cvt.rn.f32.u32 v, i; shl.b32 t, i, 2; add.u32 t, t, s; st.shared.b32 [t], v; add.u32 i, i, 32; bra F;
E: fence.proxy.async.shared::cta; bar.sync 0;
  @!first bra D;
  )" + op + R"( [map, {c0, c1}], [s];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
D:)";
  run.smem_bytes = 1024;
  run.schedule = schedule;
  return run.run(device, {uint64_t{0}, x, y, encode_tensor_map(map)});
}

TEST(TensorStore, DropsWhatIsOutsideAndReduces) {
  for (const Schedule& schedule : kAll) {
    Device device;
    std::vector<float> c(20 * 6, 1.0f);
    TensorMap map;
    map.type = TensorType::f32;
    map.dims = {20, 6};
    map.strides_bytes = {80};
    map.box = {16, 4};
    map.address = make_buffer(device, c);
    ASSERT_TRUE(
        store_box(device, map, 8, 4, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", schedule)
            .clean());
    ASSERT_TRUE(store_box(device, map, 8, 4,
                          "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group", schedule)
                    .clean());
    auto got = read_buffer<float>(device, map.address, c.size());
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 20; ++x) {
        float want = x >= 8 && y >= 4 ? 2.0f * static_cast<float>((y - 4) * 16 + x - 8) : 1.0f;
        EXPECT_EQ(got[y * 20 + x], want) << x << "," << y;
      }
    LaunchResult r =
        store_box(device, map, 0, -1, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", schedule);
    EXPECT_NE(r.text().find("is negative"), std::string::npos) << r.text();
  }
}

// Rank 0 loads for both CTAs of a cluster; each waits on its own barrier.
TEST(TensorLoad, MulticastSignalsEveryCta) {
  for (const Schedule& schedule : kAll) {
    Device device;
    std::vector<uint32_t> data(32);
    for (uint32_t i = 0; i < 32; ++i) data[i] = 100 + i;
    TensorMap map;
    map.type = TensorType::u32;
    map.rank = 1;
    map.dims = {32};
    map.box = {32};
    map.address = make_buffer(device, data);
    PtxRun run;
    run.grid = run.cluster = {2, 1, 1};
    run.schedule = schedule;
    run.smem_bytes = 1024;
    run.params = ".param .u64 out_param, .param .align 64 .b8 map_param[128]";
    run.body = R"(
  .reg .b64 out, map, o; .reg .b32 s, bar, lane, rank, v; .reg .b16 mask; .reg .pred first, both, p; .shared .align 8 .b64 barrier;
  ld.param.u64 out, [out_param]; mov.u64 map, map_param; cvta.param.u64 map, map;
  mov.u32 lane, %laneid; mov.u32 rank, %cluster_ctarank; mov.u32 s, raw; mov.u32 bar, barrier; mov.u16 mask, 3;
  setp.eq.u32 first, lane, 0;
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first fence.mbarrier_init.release.cluster;
  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.eq.and.u32 both, rank, 0, first;
  @both cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [map, {0}], [bar], mask;
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra A;
  shl.b32 v, lane, 2; add.u32 s, s, v; ld.shared.u32 v, [s];
  mad.lo.u32 rank, rank, 32, lane; mul.wide.u32 o, rank, 4; add.u64 o, o, out; st.global.u32 [o], v;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)";
    uint64_t out = device.allocate(256);
    LaunchResult r = run.run(device, {out, encode_tensor_map(map)});
    ASSERT_TRUE(r.clean()) << r.text();
    auto got = read_buffer<uint32_t>(device, out, 64);
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 100 + i % 32);
  }
}

// global -> shared (bulk) -> the peer's shared memory (bulk) -> global (bulk store).
TEST(BulkCopy, ThereAndAround) {
  for (const Schedule& schedule : kAll) {
    Device device;
    std::vector<uint32_t> data(64);
    for (uint32_t i = 0; i < 64; ++i) data[i] = i * i;
    PtxRun run;
    run.grid = run.cluster = {2, 1, 1};
    run.schedule = schedule;
    run.smem_bytes = 2048;
    run.params = ".param .u64 out_param, .param .u64 in_param";
    run.body = R"(
  .reg .b64 out, in; .reg .b32 s, bar, bar2, peer, lane, rank, dst; .reg .pred first, zero, p; .shared .align 8 .b64 b[2];
  ld.param.u64 out, [out_param]; ld.param.u64 in, [in_param];
  mov.u32 lane, %laneid; mov.u32 rank, %cluster_ctarank; mov.u32 s, raw; mov.u32 bar, b; add.u32 bar2, bar, 8;
  setp.eq.u32 first, lane, 0; setp.eq.and.u32 zero, rank, 0, first;
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first mbarrier.init.shared::cta.b64 [bar2], 1;
  @first fence.mbarrier_init.release.cluster;
  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar2], 256;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @!zero bra B;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [in], 256, [bar];
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra A;
  mapa.shared::cluster.u32 peer, bar2, 1; add.u32 dst, s, 512; mapa.shared::cluster.u32 dst, dst, 1;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst], [s], 256, [peer];
B: setp.eq.and.u32 p, rank, 1, first; @!p bra D;
C: mbarrier.try_wait.parity.shared::cta.b64 p, [bar2], 0; @!p bra C;
  add.u32 dst, s, 512;
  cp.async.bulk.global.shared::cta.bulk_group [out], [dst], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
D: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)";
    uint64_t out = device.allocate(256);
    LaunchResult r = run.run(device, {out, make_buffer(device, data)});
    ASSERT_TRUE(r.clean()) << r.text();
    EXPECT_EQ(read_buffer<uint32_t>(device, out, 64), data);
  }
}

TEST(CpAsync, GroupsAndZeroFill) {
  for (const Schedule& schedule : kAll) {
    Device device;
    std::vector<uint32_t> data(128);
    for (uint32_t i = 0; i < 128; ++i) data[i] = i + 1;
    PtxRun run;
    run.schedule = schedule;
    run.smem_bytes = 1024;
    run.params = ".param .u64 out_param, .param .u64 in_param";
    run.body = R"(
  .reg .b64 out, in, o; .reg .b32 s, lane, v, a, b2;
  ld.param.u64 out, [out_param]; ld.param.u64 in, [in_param]; mov.u32 lane, %laneid; mov.u32 s, raw;
  mul.wide.u32 o, lane, 16; add.u64 in, in, o; add.u64 out, out, o; shl.b32 v, lane, 4; add.u32 s, s, v;
  cp.async.cg.shared.global [s], [in], 16, 8;
  cp.async.commit_group;
  cp.async.ca.shared.global [s+8], [in+8], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.v2.u32 {v, a}, [s]; st.global.v2.u32 [out], {v, a};
  ld.shared.v2.u32 {v, a}, [s+8]; st.global.v2.u32 [out+8], {v, a};)";
    uint64_t out = device.allocate(512);
    LaunchResult r = run.run(device, {out, make_buffer(device, data)});
    // The second copy overwrites bytes of the first, which nobody has waited for: that much is reported.
    EXPECT_TRUE(r.completed) << r.text();
    auto got = read_buffer<uint32_t>(device, out, 128);
    for (uint32_t i = 0; i < 128; ++i) {
      uint32_t want = i % 4 == 3 ? 0 : i + 1;
      EXPECT_EQ(got[i], want) << i << " " << name(schedule.policy);
    }
  }
}

}  // namespace
}  // namespace gemmtune::emulator
