// A kernel with a tensor map, a pointer and a struct: what parameters of a launch may be.
#pragma once

namespace gemmtune::emulator {

/// One warp loads a box of A by TMA and stores its 16-bit elements as they lie in shared memory.
inline constexpr const char* kTmaCopy = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out, .param .align 8 .b8 where[16])
{
  .reg .b64 po, pm, lo;
  .reg .b32 x, y, lane, v, off;
  .reg .pred p;
  .shared .align 128 .b8 s[1024];
  .shared .align 8 .b8 bar[8];
  ld.param.u64 po, [out];
  mov.b64 pm, map;
  cvta.param.u64 pm, pm;
  ld.param.u32 x, [where+4];
  ld.param.u32 y, [where+8];
  mov.u32 lane, %tid.x;
  setp.eq.u32 p, lane, 0;
  @p mbarrier.init.shared::cta.b64 [bar], 1;
  @p fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
  @p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [pm, {x, y}], [bar];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
  @!p bra WAIT;
  shl.b32 off, lane, 2;
LOOP:
  mov.u32 v, s;
  add.u32 v, v, off;
  ld.shared.u32 v, [v];
  cvt.u64.u32 lo, off;
  add.u64 lo, po, lo;
  st.global.u32 [lo], v;
  add.u32 off, off, 128;
  setp.lt.u32 p, off, 1024;
  @p bra LOOP;
  ret;
}
)";

}  // namespace gemmtune::emulator
