// Accepted forms of the matrix instructions (PTX ISA 9.7.14 to 9.7.16; ptx-facts 1.6 to 1.8, 2.5).
#include "emulator/forms.h"

namespace gemmtune::emulator {

// wgmma exists for every multiple of 8 up to 256; the integer kind has gaps above 32.
#define GEMMTUNE_EVERY_N(k)                                                                                 \
  "m64n8" k ",m64n16" k ",m64n24" k ",m64n32" k ",m64n40" k ",m64n48" k ",m64n56" k ",m64n64" k ",m64n72" k \
  ",m64n80" k ",m64n88" k ",m64n96" k ",m64n104" k ",m64n112" k ",m64n120" k ",m64n128" k ",m64n136" k      \
  ",m64n144" k ",m64n152" k ",m64n160" k ",m64n168" k ",m64n176" k ",m64n184" k ",m64n192" k ",m64n200" k   \
  ",m64n208" k ",m64n216" k ",m64n224" k ",m64n232" k ",m64n240" k ",m64n248" k ",m64n256" k
#define GEMMTUNE_INTEGER_N                                                                                \
  "m64n8k32,m64n16k32,m64n24k32,m64n32k32,m64n48k32,m64n64k32,m64n80k32,m64n96k32,m64n112k32,m64n128k32," \
  "m64n144k32,m64n160k32,m64n176k32,m64n192k32,m64n208k32,m64n224k32,m64n240k32,m64n256k32"

std::span<const FormRule> matrix_forms() {
  constexpr FormRows kComplete = FormRows::complete;
  constexpr FormTarget kHopper = FormTarget::hopper;
  static constexpr FormRule kRules[] = {
      {"ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans][.{shared,shared::cta}].b16", kComplete},
      {"stmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans][.{shared,shared::cta}].b16", kComplete},
      {"mma.sync.aligned.{m16n8k8,m16n8k16}.row.col.{f32.f16.f16.f32,f16.f16.f16.f16,f32.bf16.bf16.f32}",
       kComplete},
      {"mma.sync.aligned.{m16n8k4,m16n8k8}.row.col.f32.tf32.tf32.f32", kComplete},
      {"mma.sync.aligned.{m16n8k16,m16n8k32}.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32", kComplete},
      {"mma.sync.aligned.{m16n8k16,m16n8k32}.row.col[.satfinite].s32.{u8,s8}.{u8,s8}.s32", kComplete},

      {"wgmma.{fence,commit_group,wait_group}.sync.aligned", kComplete, kHopper},
      {"wgmma.mma_async.sync.aligned.{" GEMMTUNE_EVERY_N("k16") "}.{f32.f16.f16,f16.f16.f16,f32.bf16.bf16}",
       kComplete, kHopper},
      {"wgmma.mma_async.sync.aligned.{" GEMMTUNE_EVERY_N("k8") "}.f32.tf32.tf32", kComplete, kHopper},
      {"wgmma.mma_async.sync.aligned.{" GEMMTUNE_EVERY_N("k32") "}.{f32,f16}.{e4m3,e5m2}.{e4m3,e5m2}",
       kComplete, kHopper},
      {"wgmma.mma_async.sync.aligned.{" GEMMTUNE_INTEGER_N "}.s32.{s8,u8}.{s8,u8}", kComplete, kHopper},
  };
  return kRules;
}

// 16x32bx2 with .pack::16b is left out: whether its column offset counts packed columns is not known
// (ptx-facts 4.5).
std::span<const FormRule> tcgen05_forms() {
  constexpr FormRows kComplete = FormRows::complete;
  constexpr FormTarget kBlackwell = FormTarget::blackwell;
  static constexpr FormRule kRules[] = {
      {"tcgen05.alloc.{cta_group::1,cta_group::2}.sync.aligned[.shared::cta].b32", kComplete, kBlackwell},
      {"tcgen05.dealloc.{cta_group::1,cta_group::2}.sync.aligned.b32", kComplete, kBlackwell},
      {"tcgen05.relinquish_alloc_permit.{cta_group::1,cta_group::2}.sync.aligned", kComplete, kBlackwell},
      {"tcgen05.mma.{cta_group::1,cta_group::2}.{kind::f16,kind::tf32,kind::f8f6f4,kind::i8}"
       "[.{collector::a::fill,collector::a::use,collector::a::lastuse,collector::a::discard}]",
       kComplete, kBlackwell},
      {"tcgen05.commit.{cta_group::1,cta_group::2}.mbarrier::arrive::one[.shared::cluster][.multicast::"
       "cluster].b64",
       kComplete, kBlackwell},
      {"tcgen05.cp.{cta_group::1,cta_group::2}"
       ".{128x256b,4x256b,128x128b,64x128b.warpx2::02_13,64x128b.warpx2::01_23,32x128b.warpx4}",
       kComplete, kBlackwell},
      {"tcgen05.ld.sync.aligned.{32x32b,16x64b}.{x1,x2,x4,x8,x16,x32,x64,x128}[.pack::16b].b32", kComplete,
       kBlackwell},
      {"tcgen05.ld.sync.aligned.16x32bx2.{x1,x2,x4,x8,x16,x32,x64,x128}.b32", kComplete, kBlackwell},
      {"tcgen05.ld.sync.aligned.16x128b.{x1,x2,x4,x8,x16,x32,x64}[.pack::16b].b32", kComplete, kBlackwell},
      {"tcgen05.ld.sync.aligned.16x256b.{x1,x2,x4,x8,x16,x32}[.pack::16b].b32", kComplete, kBlackwell},
      {"tcgen05.st.sync.aligned.{32x32b,16x64b}.{x1,x2,x4,x8,x16,x32,x64,x128}[.unpack::16b].b32", kComplete,
       kBlackwell},
      {"tcgen05.st.sync.aligned.16x32bx2.{x1,x2,x4,x8,x16,x32,x64,x128}.b32", kComplete, kBlackwell},
      {"tcgen05.st.sync.aligned.16x128b.{x1,x2,x4,x8,x16,x32,x64}[.unpack::16b].b32", kComplete, kBlackwell},
      {"tcgen05.st.sync.aligned.16x256b.{x1,x2,x4,x8,x16,x32}[.unpack::16b].b32", kComplete, kBlackwell},
      {"tcgen05.{wait::ld,wait::st}.sync.aligned", kComplete, kBlackwell},
      {"tcgen05.{fence::before_thread_sync,fence::after_thread_sync}", kComplete, kBlackwell},
  };
  return kRules;
}

}  // namespace gemmtune::emulator
