// Accepted forms of floating-point arithmetic and conversions (PTX ISA 9.7.3 to 9.7.5, 9.7.9).
#include "emulator/forms.h"

namespace gemmtune::emulator {

std::span<const FormRule> float_forms() {
  constexpr FormTarget kBlackwell = FormTarget::blackwell;
  constexpr FormRows kEach = FormRows::each_choice;
  static constexpr FormRule kRules[] = {
      {"add[.{rn,rz,rm,rp}][.ftz][.sat].f32"},
      {"add[.{rn,rz,rm,rp}].f64"},
      {"add[.rn][.ftz][.sat].{f16,f16x2}"},
      {"add[.rn].{bf16,bf16x2}"},
      {"add[.{rn,rz,rm,rp}][.ftz].f32x2", kEach, kBlackwell},
      {"sub[.{rn,rz,rm,rp}][.ftz][.sat].f32"},
      {"sub[.{rn,rz,rm,rp}].f64"},
      {"sub[.rn][.ftz][.sat].{f16,f16x2}"},
      {"sub[.rn].{bf16,bf16x2}"},
      {"sub[.{rn,rz,rm,rp}][.ftz].f32x2", kEach, kBlackwell},
      {"mul[.{rn,rz,rm,rp}][.ftz][.sat].f32"},
      {"mul[.{rn,rz,rm,rp}].f64"},
      {"mul[.rn][.ftz][.sat].{f16,f16x2}"},
      {"mul[.rn].{bf16,bf16x2}"},
      {"mul[.{rn,rz,rm,rp}][.ftz].f32x2", kEach, kBlackwell},
      {"fma.{rn,rz,rm,rp}[.ftz][.sat].f32"},
      {"fma.{rn,rz,rm,rp}.f64"},
      {"fma.rn[.ftz][.{sat,relu}].{f16,f16x2}"},
      {"fma.rn[.relu].{bf16,bf16x2}"},
      {"fma.{rn,rz,rm,rp}[.ftz].f32x2", kEach, kBlackwell},
      {"mad.{rn,rz,rm,rp}[.ftz][.sat].f32"},
      {"mad.{rn,rz,rm,rp}.f64"},
      {"div.{approx,full,rn,rz,rm,rp}[.ftz].f32"},
      {"div.{rn,rz,rm,rp}.f64"},
      {"min[.ftz][.NaN][.xorsign.abs].f32"},
      {"min.f64"},
      {"min[.ftz][.NaN].{f16,f16x2}"},
      {"min[.NaN].{bf16,bf16x2}"},
      {"max[.ftz][.NaN][.xorsign.abs].f32"},
      {"max.f64"},
      {"max[.ftz][.NaN].{f16,f16x2}"},
      {"max[.NaN].{bf16,bf16x2}"},
      {"abs[.ftz].f32"},
      {"abs.f64"},
      {"abs[.ftz].{f16,f16x2}"},
      {"abs.{bf16,bf16x2}"},
      {"neg[.ftz].f32"},
      {"neg.f64"},
      {"neg[.ftz].{f16,f16x2}"},
      {"neg.{bf16,bf16x2}"},
      {"rcp.{approx,rn,rz,rm,rp}[.ftz].f32"},
      {"rcp.{rn,rz,rm,rp}.f64"},
      {"sqrt.{approx,rn,rz,rm,rp}[.ftz].f32"},
      {"sqrt.{rn,rz,rm,rp}.f64"},
      {"rsqrt.approx[.ftz].f32"},
      {"rsqrt.approx.f64"},
      {"sin.approx[.ftz].f32"},
      {"cos.approx[.ftz].f32"},
      {"lg2.approx[.ftz].f32"},
      {"ex2.approx[.ftz].f32"},
      {"tanh.approx.f32"},
      {"copysign.{f32,f64}"},
      {"testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64}"},
  };
  return kRules;
}

std::span<const FormRule> convert_forms() {
  static constexpr FormRule kRules[] = {
      {"cvt.{u8,u16,u32,u64,s8,s16,s32,s64}.{u8,u16,u32,u64,s8,s16,s32,s64}"},
      // Only where a value can lie outside.
      {"cvt.sat.{u8.u16,u8.u32,u8.u64,u8.s8,u8.s16,u8.s32,u8.s64,u16.u32,u16.u64,u16.s8,u16.s16,u16.s32,u16."
       "s64,"
       "u32.u64,u32.s8,u32.s16,u32.s32,u32.s64,u64.s8,u64.s16,u64.s32,u64.s64,s8.u8,s8.u16,s8.u32,s8.u64,s8."
       "s16,"
       "s8.s32,s8.s64,s16.u16,s16.u32,s16.u64,s16.s32,s16.s64,s32.u32,s32.u64,s32.s64,s64.u64}"},
      {"cvt.{rn,rz,rm,rp}[.sat].{f16,f32,f64}.{u8,u16,u32,u64,s8,s16,s32,s64}"},
      {"cvt.{rn,rz,rm,rp}.bf16.{u16,u32,u64,s16,s32,s64}"},
      {"cvt.{rni,rzi,rmi,rpi}[.sat].{u8,u16,u32,u64,s8,s16,s32,s64}.{f16,f32,f64}"},
      {"cvt.{rni,rzi,rmi,rpi}.ftz.{u8,u16,u32,u64,s8,s16,s32,s64}.f32"},
      {"cvt.{rni,rzi,rmi,rpi}.{u16,u32,u64,s16,s32,s64}.bf16"},
      // Widening is exact.
      {"cvt[.ftz][.sat].f32.f16"},
      {"cvt[.ftz][.sat].f64.f32"},
      {"cvt[.sat].f64.f16"},
      {"cvt.f32.bf16"},
      // Narrowing rounds.
      {"cvt.{rn,rz,rm,rp}[.ftz][.sat].f16.f32"},
      {"cvt.{rn,rz,rm,rp}[.ftz][.sat].f32.f64"},
      {"cvt.{rn,rz,rm,rp}[.sat].f16.f64"},
      {"cvt.{rn,rz,rm,rp}.bf16.f32"},
      {"cvt.{rn,rz}.relu.{f16,bf16}.f32"},
      {"cvt.{rn,rz}[.relu].{f16x2,bf16x2}.f32"},
      {"cvt.rna.tf32.f32"},
      {"cvt.{rn,rz}[.relu].tf32.f32"},
      {"cvt.rn.satfinite[.relu].{e4m3x2,e5m2x2}.{f32,f16x2}", FormRows::complete},
      {"cvt.rn[.relu].f16x2.{e4m3x2,e5m2x2}", FormRows::complete},
      // To whole numbers, flushed or saturated, in the same type.
      {"cvt[.{rni,rzi,rmi,rpi}][.ftz][.sat].f32.f32"},
      {"cvt[.{rni,rzi,rmi,rpi}][.sat].{f16.f16,f64.f64}"},
  };
  return kRules;
}

}  // namespace gemmtune::emulator
