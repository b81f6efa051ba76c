// Order between warps: what a warp may rely on comes through barriers, whatever this run's timing was. Each
// case is a pair, right and with one line missing.
#include <gtest/gtest.h>

#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

const Schedule kAll[] = {{SchedulePolicy::eager, 0}, {SchedulePolicy::lazy, 0}, {SchedulePolicy::random, 5}};

/// Replaces `@1@`, `@2@` … by the given lines.
std::string filled(std::string body, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string mark = "@" + std::to_string(i + 1) + "@";
    for (size_t at; (at = body.find(mark)) != std::string::npos;) body.replace(at, mark.size(), lines[i]);
  }
  return body;
}

struct Findings {
  bool clean = true;  ///< under every schedule
  std::string text;   ///< of all
  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
};

Findings run_all(const std::string& body, uint32_t threads = 64, const std::string& target = "sm_90a") {
  Findings f;
  for (const Schedule& schedule : kAll) {
    Device device;
    PtxRun run;
    run.target = target;
    run.params = ".param .u64 out_param";
    run.block = {threads, 1, 1};
    run.smem_bytes = 8192;
    run.schedule = schedule;
    run.body = body;
    uint64_t out = device.allocate(8192);
    device.fill(out, 0, 8192);
    TensorMap map;  // 256 bytes of `out`
    map.type = TensorType::u8;
    map.rank = 1;
    map.address = out;
    map.dims = {256};
    map.box = {256};
    device.copy_in(out + 4096, encode_tensor_map(map));
    LaunchResult r = run.run(device, {out});
    f.clean &= r.clean() && r.diagnoses.empty();
    f.text += std::string(name(schedule.policy)) + ":\n" + r.text();
  }
  return f;
}

/// Time for the others to run; orders nothing.
const char* kPause =
    "mov.u32 i, 0; PAUSE: add.u32 i, i, 1; nanosleep.u32 20; setp.lt.u32 p, i, 100; @p bra PAUSE;";

const char* kPrologue = R"(
  .reg .b64 out; .reg .b32 s, bar, bar2, warp, lane, v, i, n, parity; .reg .pred p, q, first, w0, w1; .shared .align 8 .b64 b[4];
  ld.param.u64 out, [out_param]; mov.u32 s, raw; mov.u32 bar, b; add.u32 bar2, bar, 8;
  mov.u32 v, %tid.x; shr.u32 warp, v, 5; and.b32 lane, v, 31; setp.eq.u32 first, v, 0;
  setp.eq.u32 w0, warp, 0; setp.eq.u32 w1, warp, 1;
)";

TEST(Races, GenericWriteReadByAnotherWarpNeedsABarrier) {
  std::string body = std::string(kPrologue) + R"(
  @first st.shared.u32 [s], 7;
  @1@
  @w1 ld.shared.u32 v, [s];)";
  Findings right = run_all(filled(body, {"bar.sync 0;"}));
  EXPECT_TRUE(right.clean) << right.text;
  EXPECT_TRUE(run_all(filled(body, {""})).has("thread 0 of CTA rank 0 writes at line"));
  // Other bytes of the same sixteen are nobody's concern.
  std::string apart = std::string(kPrologue) + R"(
  shl.b32 v, warp, 2; add.u32 s, s, v; st.shared.u32 [s], v; ld.shared.u32 v, [s];)";
  Findings two = run_all(apart);
  EXPECT_TRUE(two.clean) << two.text;
}

// Warp 1 reads a stage, warp 0 lets a copy overwrite it.
const char* kOverwrite = R"(
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first mbarrier.init.shared::cta.b64 [bar2], 32;
  @first fence.mbarrier_init.release.cluster;
  st.shared.u32 [s+256], 1; fence.proxy.async.shared::cta; bar.sync 0;
  @w0 bra PRODUCER;
  @1@
  @2@
  bra DONE;
PRODUCER: @3@
  @!first bra DONE;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [out], 256, [bar];
FULL: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra FULL;
DONE: bar.sync 0;)";

TEST(Races, CopyOverWhatAnotherWarpStillReads) {
  std::string body = std::string(kPrologue) + kOverwrite;
  const std::string wait = "EMPTY: mbarrier.try_wait.parity.shared::cta.b64 p, [bar2], 0; @!p bra EMPTY;";
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [bar2];";
  for (const char* read :
       {"ld.shared.u32 v, [s];",
        "{ .reg .b32 a<4>; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1, a2, a3}, [s]; }"}) {
    Findings right = run_all(filled(body, {read, arrive, wait}));
    EXPECT_TRUE(right.clean) << right.text;
    Findings unordered = run_all(filled(body, {read, arrive, ""}));
    EXPECT_TRUE(unordered.has("nothing orders that read before this copy")) << unordered.text;
    // The arrival must come after the read.
    Findings early = run_all(filled(body, {arrive, read, wait}));
    EXPECT_TRUE(early.has("nothing orders that read before this copy")) << early.text;
  }
}

TEST(Races, CopyOutOfWhatAnotherWarpWritesNeedsABarrierBesideTheFence) {
  std::string body = std::string(kPrologue) + R"(
  shl.b32 v, v, 2; add.u32 i, s, v; st.shared.u32 [i], v;
  fence.proxy.async.shared::cta;
  @1@
  @!first bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [out], [s], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE: bar.sync 0;)";
  Findings right = run_all(filled(body, {"bar.sync 0;"}));
  EXPECT_TRUE(right.clean) << right.text;
  EXPECT_TRUE(run_all(filled(body, {"bar.warp.sync 0xffffffff;"})).has("no barrier orders the two"));
}

// cp.async writes through the generic proxy: who waited for it must fence before the async proxy reads. A
// fence before the wait does not count.
TEST(Races, CpAsyncPhaseNeedsAProxyFence) {
  std::string body = std::string(kPrologue) + R"(
  .reg .b64 from; shl.b32 v, v, 4; add.u32 i, s, v; cvt.u64.u32 from, v; add.u64 from, from, out;
  cp.async.cg.shared.global [i], [from], 16;
  @1@
  cp.async.wait_all;
  @2@
  bar.sync 0;
  @!first bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [out], [s], 1024;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE: bar.sync 0;)";
  const std::string fence = "fence.proxy.async.shared::cta;";
  Findings right = run_all(filled(body, {"", fence}));
  EXPECT_TRUE(right.clean) << right.text;
  EXPECT_TRUE(run_all(filled(body, {"", ""})).has("no fence.proxy.async followed"));
  EXPECT_TRUE(run_all(filled(body, {fence, ""})).has("no fence.proxy.async followed"));
}

// A copy that one warp has waited for is not known to another that no barrier ties to it.
TEST(Races, WaitOfAnotherWarpDoesNotCount) {
  std::string body = std::string(kPrologue) + R"(
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @!w0 bra READ;
  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
  @first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [out], 256, [bar];
FULL: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra FULL;
READ: @1@
  mov.u32 i, 0; SPIN: add.u32 i, i, 1; nanosleep.u32 20; setp.lt.u32 p, i, 100; @p bra SPIN;
  @w1 ld.shared.u32 v, [s];)";
  Findings right = run_all(filled(body, {"bar.sync 0;"}));
  EXPECT_TRUE(right.clean) << right.text;
  EXPECT_TRUE(run_all(filled(body, {""})).has("nobody waited for its completion"));
}

// Warp 0 completes phases of `bar` as fast as `bar2` lets it; warp 1 waits for every second one. Waiting for
// phase 2 by parity 0 passes on phase 0 unless something says that phase 1 is over.
TEST(Mbarrier, WaitThatCanPassALapEarly) {
  std::string body = std::string(kPrologue) + R"(
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first mbarrier.init.shared::cta.b64 [bar2], 1;
  @first fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @w1 bra WAITER;
  @!first bra DONE;
  mbarrier.arrive.shared::cta.b64 _, [bar]; mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.arrive.shared::cta.b64 _, [bar2];
  mbarrier.arrive.shared::cta.b64 _, [bar];
  bra DONE;
WAITER: mov.u32 i, 0; SPIN: add.u32 i, i, 1; nanosleep.u32 20; setp.lt.u32 p, i, 100; @p bra SPIN;
  @1@
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra A;
DONE: bar.sync 0;)";
  Findings right =
      run_all(filled(body, {"O: mbarrier.try_wait.parity.shared::cta.b64 p, [bar2], 0; @!p bra O;"}));
  EXPECT_TRUE(right.clean) << right.text;
  Findings wrong = run_all(filled(body, {""}));
  EXPECT_TRUE(wrong.has("sees phase 2 complete without knowing of phase 1")) << wrong.text;
}

TEST(Mbarrier, PhaseThatMayCompleteTwiceBeforeAWarpHasLooked) {
  std::string body = std::string(kPrologue) + R"(
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first mbarrier.init.shared::cta.b64 [bar2], 64;
  @first fence.mbarrier_init.release.cluster;
  bar.sync 0; mov.u32 parity, 0;
NEXT: @first mbarrier.arrive.shared::cta.b64 _, [bar];
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], parity; @!p bra A;
  @1@
  xor.b32 parity, parity, 1; setp.eq.u32 p, parity, 1; @p bra NEXT;)";
  Findings right = run_all(filled(body, {"bar.sync 0;"}));
  EXPECT_TRUE(right.clean) << right.text;
  // A pause orders nothing; it only keeps this run from the deadlock that the warning is about.
  Findings luck = run_all(filled(body, {kPause}));
  EXPECT_TRUE(luck.has("could complete before this warp had looked at phase 0")) << luck.text;
  EXPECT_TRUE(run_all(filled(body, {""})).has("deadlock"));
}

// .relaxed arrivals pass nothing on.
TEST(Mbarrier, RelaxedArrivalDoesNotPublish) {
  std::string body = std::string(kPrologue) + R"(
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @w1 bra WAITER;
  @first st.shared.u32 [s], 7; @first mbarrier.arrive.@1@.cta.shared::cta.b64 _, [bar];
  bra DONE;
WAITER: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra WAITER;
  ld.shared.u32 v, [s];
DONE: bar.sync 0;)";
  Findings right = run_all(filled(body, {"release"}));
  EXPECT_TRUE(right.clean) << right.text;
  EXPECT_TRUE(run_all(filled(body, {"relaxed"})).has("writes at line"));
}

// A flag in memory orders too, when it is written and read as one.
TEST(Races, FlagInMemory) {
  std::string body = std::string(kPrologue) + R"(
  @w1 bra WAITER;
  @first st.shared.u32 [s], 7; @first @1@ [out], 1;
  bra DONE;
WAITER: @2@ v, [out]; setp.ne.u32 p, v, 1; @p bra WAITER;
  ld.shared.u32 v, [s];
DONE: bar.sync 0;)";
  Findings right = run_all(filled(body, {"st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"}));
  EXPECT_TRUE(right.clean) << right.text;
  right = run_all(filled(body, {"st.volatile.global.u32", "ld.volatile.global.u32"}));
  EXPECT_TRUE(right.clean) << right.text;
}

// Warp 1 multiplies, warp 0 reads the accumulator, warp 1 multiplies into it again.
const char* kAccumulatorTwice = R"(
  .reg .b64 a, bd; .reg .b32 tm, d<8>;
  @w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [raw+6000], 32;
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first mbarrier.init.shared::cta.b64 [bar2], 1;
  @first fence.mbarrier_init.release.cluster;
  shl.b32 v, v, 3; add.u32 i, s, v; mov.u32 n, 0;
FILL: st.shared.v2.u32 [i], {0, 0}; add.u32 i, i, 512; add.u32 n, n, 1; setp.lt.u32 p, n, 10; @p bra FILL;
  fence.proxy.async.shared::cta;
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.u32 tm, [raw+6000];
  and.b32 n, s, 0x3ffff; shr.u32 n, n, 4; cvt.u64.u32 a, n; or.b64 a, a, 0x0000400800800000;
  add.u64 bd, a, 256;
  @w0 bra READ;
  elect.sync _|q, 0xffffffff;
  @q tcgen05.mma.cta_group::1.kind::f16 [tm], a, bd, 0x08080010, 0;
  @q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
  bra SECOND;
READ: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra READ;
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {d0, d1, d2, d3, d4, d5, d6, d7}, [tm];
  tcgen05.wait::ld.sync.aligned;
  @1@
SECOND: @2@
  @w0 bra LAST;
  @3@
  @q tcgen05.mma.cta_group::1.kind::f16 [tm], a, bd, 0x08080010, 0;
  @q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar2];
LAST: mbarrier.try_wait.parity.shared::cta.b64 p, [bar2], 0; @!p bra LAST;
  tcgen05.fence::after_thread_sync;
  @w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 tm, 32;)";

TEST(TensorMemory, AccumulatorHandedBackNeedsBarrierAndFences) {
  std::string body = std::string(kPrologue) + kAccumulatorTwice;
  const std::string before = "tcgen05.fence::before_thread_sync;",
                    after = "tcgen05.fence::after_thread_sync;";
  Findings right = run_all(filled(body, {before, "bar.sync 0;", after}), 64, "sm_100a");
  EXPECT_TRUE(right.clean) << right.text;
  Findings f = run_all(filled(body, {before, kPause, after}), 64, "sm_100a");
  EXPECT_TRUE(f.has("nothing orders the tcgen05.ld of warp 0 of CTA rank 0")) << f.text;
  f = run_all(filled(body, {"", "bar.sync 0;", after}), 64, "sm_100a");
  EXPECT_TRUE(f.has("warning: tmem") && f.has("no tcgen05.fence::before_thread_sync follows the tcgen05.ld"))
      << f.text;
  f = run_all(filled(body, {before, "bar.sync 0;", ""}), 64, "sm_100a");
  EXPECT_TRUE(f.has("no tcgen05.fence::after_thread_sync behind the barrier that follows the tcgen05.ld"))
      << f.text;
}

// Warp 0 stores, warp 4 (of the same quarter) loads.
TEST(TensorMemory, StoreForAnotherWarpNeedsBarrierAndFences) {
  std::string body = std::string(kPrologue) + R"(
  .reg .b32 tm;
  @w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [raw], 32;
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.u32 tm, [raw];
  setp.eq.u32 q, warp, 4;
  @w0 tcgen05.st.sync.aligned.32x32b.x1.b32 [tm], {v};
  @w0 tcgen05.wait::st.sync.aligned;
  @1@
  @q tcgen05.ld.sync.aligned.32x32b.x1.b32 {v}, [tm];
  @q tcgen05.wait::ld.sync.aligned;
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  @w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 tm, 32;)";
  const std::string before = "tcgen05.fence::before_thread_sync;",
                    after = "tcgen05.fence::after_thread_sync;";
  Findings right = run_all(filled(body, {before + "bar.sync 0;" + after}), 160, "sm_100a");
  EXPECT_TRUE(right.clean) << right.text;
  Findings f = run_all(filled(body, {before + kPause + after}), 160, "sm_100a");
  EXPECT_TRUE(f.has("nothing orders the tcgen05.st of warp 0")) << f.text;
  f = run_all(filled(body, {"bar.sync 0;" + after}), 160, "sm_100a");
  EXPECT_TRUE(f.has("no tcgen05.fence::before_thread_sync follows the tcgen05.st")) << f.text;
}

// A generic write to global memory, then a copy that reads it.
TEST(GlobalMemory, CopyOfWhatTheKernelWroteNeedsAProxyFence) {
  std::string body = std::string(kPrologue) + R"(
  @first mbarrier.init.shared::cta.b64 [bar], 1;
  @first fence.mbarrier_init.release.cluster;
  .reg .b64 o; mul.wide.u32 o, v, 4; add.u64 o, o, out; st.global.u32 [o], v;
  @1@
  @2@
  @!first bra DONE;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [out], 256, [bar];
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra A;
DONE: bar.sync 0;)";
  for (const char* fence : {"fence.proxy.async.global;", "fence.proxy.async;"}) {
    Findings right = run_all(filled(body, {fence, "bar.sync 0;"}));
    EXPECT_TRUE(right.clean) << right.text;
    Findings f = run_all(filled(body, {fence, kPause}));
    EXPECT_TRUE(f.has("the bulk copy reads global memory") && f.has("no barrier orders the two")) << f.text;
  }
  for (const char* fence : {"", "fence.proxy.async.shared::cta;"}) {
    Findings f = run_all(filled(body, {fence, "bar.sync 0;"}));
    EXPECT_TRUE(f.has("no fence.proxy.async (or .global) followed")) << f.text;
  }
}

TEST(GlobalMemory, TensorMapThatTheKernelWroteNeedsItsOwnFences) {
  std::string body = std::string(kPrologue) + R"(
  .reg .b64 from, to; .reg .b32 x<4>;
  @!first bra DONE;
  mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
  add.u64 from, out, 4096; add.u64 to, out, 2048; mov.u32 n, 0;
COPY: ld.global.v4.u32 {x0, x1, x2, x3}, [from]; st.global.v4.u32 [to], {x0, x1, x2, x3};
  add.u64 from, from, 16; add.u64 to, to, 16; add.u32 n, n, 1; setp.lt.u32 p, n, 8; @p bra COPY;
  add.u64 to, out, 2048;
  @1@
  @2@
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [to, {0}], [bar];
A: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra A;
DONE: bar.sync 0;)";
  const std::string release = "fence.proxy.tensormap::generic.release.gpu;";
  const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [to], 128;";
  Findings right = run_all(filled(body, {release, acquire}));
  EXPECT_TRUE(right.clean) << right.text;
  EXPECT_TRUE(run_all(filled(body, {"", acquire})).has("generic.release followed"));
  EXPECT_TRUE(run_all(filled(body, {release, ""})).has("generic.acquire on it since"));
}

}  // namespace
}  // namespace gemmtune::emulator
