// Accepted forms of control flow, warp communication, loads and stores, atomics (PTX
// ISA 9.7.9, 9.7.12, 9.7.13).
#include "emulator/forms.h"

namespace gemmtune::emulator {

std::span<const FormRule> control_forms() {
  constexpr FormTarget kBlackwell = FormTarget::blackwell;
  constexpr FormRows kComplete = FormRows::complete;
  static constexpr FormRule kRules[] = {
      {"bra[.uni]"},
      {"brx.idx[.uni]"},
      {"call[.uni]"},
      {"ret[.uni]"},
      {"exit"},
      {"trap"},
      {"nanosleep.u32"},
      {"pmevent[.mask]"},

      {"shfl.sync.{up,down,bfly,idx}.b32"},
      {"vote.sync.{all,any,uni}.pred"},
      {"vote.sync.ballot.b32"},
      {"match.{any,all}.sync.{b32,b64}", kComplete},
      {"redux.sync.{add,min,max}.{u32,s32}", kComplete},
      {"redux.sync.{and,or,xor}.b32"},
      {"redux.sync.{min,max}[.abs][.NaN].f32", kComplete, kBlackwell},
      {"elect.sync"},
      {"activemask.b32"},
      {"movmatrix.sync.aligned.m8n8.trans.b16"},
  };
  return kRules;
}

std::span<const FormRule> memory_forms() {
  constexpr FormTarget kBlackwell = FormTarget::blackwell;
  constexpr FormRows kEach = FormRows::each_choice, kComplete = FormRows::complete;
  static constexpr FormRule kRules[] = {
      {"ld[.weak][.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry,param::func}]"
       "[.{v2,v4}].{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}"},
      {"ld[.weak][.{global,shared,shared::cta,shared::cluster,local,const,param,param::entry,param::func}]"
       "[.v2].{b64,u64,s64,f64}"},
      {"ld[.{global,shared}].b128"},
      {"ld[.global].{ca,cg,cs,lu,cv}[.{v2,v4}].{b32,u32,s32,f32}"},
      {"ld[.global].{ca,cg,cs,lu,cv}[.v2].{b64,u64,s64,f64}"},
      {"ld.global[.nc]["
       ".{L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate}]"
       "[.L2::cache_hint][.{L2::64B,L2::128B,L2::256B}][.{v2,v4}].{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}"},
      {"ld.global[.nc]["
       ".{L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate}]"
       "[.L2::cache_hint][.{L2::64B,L2::128B,L2::256B}][.v2].{b64,u64,s64,f64}"},
      {"ld.global[.nc].{v8.b32,v8.u32,v8.s32,v8.f32,v4.b64,v4.u64,v4.s64,v4.f64}", kEach, kBlackwell},
      {"ld.volatile[.{global,shared,shared::cta}][.{v2,v4}].{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}"},
      {"ld.volatile[.{global,shared,shared::cta}][.v2].{b64,u64,s64,f64}"},
      {"ld.{relaxed,acquire}.{cta,cluster,gpu,sys}[.{global,shared,shared::cta,shared::cluster}][.{v2,v4}]"
       ".{b32,u32,s32,f32}"},
      {"ld.{relaxed,acquire}.{cta,cluster,gpu,sys}[.{global,shared,shared::cta,shared::cluster}][.v2]"
       ".{b64,u64,s64,f64}"},
      {"ldu[.global][.{v2,v4}].{b32,u32,s32,f32}"},
      {"ldu[.global][.v2].{b64,u64,s64,f64}"},
      {"st[.weak][.{global,shared,shared::cta,shared::cluster,local,param,param::func}][.{v2,v4}]"
       ".{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}"},
      {"st[.weak][.{global,shared,shared::cta,shared::cluster,local,param,param::func}][.v2]"
       ".{b64,u64,s64,f64}"},
      {"st[.{global,shared}].b128"},
      {"st[.global].{wb,cg,cs,wt}[.{v2,v4}].{b32,u32,s32,f32}"},
      {"st[.global].{wb,cg,cs,wt}[.v2].{b64,u64,s64,f64}"},
      {"st.global[.{L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate}]"
       "[.L2::cache_hint][.{v2,v4}].{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}"},
      {"st.global[.{L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate}]"
       "[.L2::cache_hint][.v2].{b64,u64,s64,f64}"},
      {"st.global.{v8.b32,v8.u32,v8.s32,v8.f32,v4.b64,v4.u64,v4.s64,v4.f64}", kEach, kBlackwell},
      // As learn-cuda's epilogue writes it.
      {"st.relaxed.cta.global.L1::no_allocate.{v8.b32,v8.u32,v8.s32,v8.f32,v4.b64,v4.u64,v4.s64,v4.f64}",
       kEach, kBlackwell},
      {"st.volatile[.{global,shared,shared::cta}][.{v2,v4}].{b8,b16,b32,u8,u16,u32,s8,s16,s32,f32}"},
      {"st.volatile[.{global,shared,shared::cta}][.v2].{b64,u64,s64,f64}"},
      {"st.{relaxed,release}.{cta,cluster,gpu,sys}[.{global,shared,shared::cta,shared::cluster}][.{v2,v4}]"
       ".{b32,u32,s32,f32}"},
      {"st.{relaxed,release}.{cta,cluster,gpu,sys}[.{global,shared,shared::cta,shared::cluster}][.v2]"
       ".{b64,u64,s64,f64}"},
      {"prefetch[.{global,local}].{L1,L2}"},
      {"prefetch.global.{L2::evict_last,L2::evict_normal}"},
      {"prefetch[.param].tensormap"},
      {"prefetchu.L1"},
      {"applypriority[.global].L2::evict_normal"},
      {"discard[.global].L2"},

      {"atom[.{relaxed,acquire,release,acq_rel}][.{cta,cluster,gpu,sys}]"
       "[.{global,shared,shared::cta,shared::cluster}].add.{u32,s32,u64,f32,f64}"},
      {"atom[.global].add.noftz[.L2::cache_hint].{f16,f16x2,bf16,bf16x2}"},
      {"atom.global.add.{v2,v4}.f32"},
      {"atom.global.{add,min,max}.noftz.{v2,v4,v8}.{f16,bf16}"},
      {"atom.global.{add,min,max}.noftz.{v2,v4}.{f16x2,bf16x2}"},
      {"atom[.{global,shared,shared::cluster}].{min,max}.{u32,s32,u64,s64}"},
      {"atom[.{global,shared,shared::cluster}].{and,or,xor}.{b32,b64}"},
      {"atom[.{global,shared,shared::cluster}].{inc,dec}.u32"},
      {"atom[.{global,shared,shared::cluster}].{exch,cas}.{b32,b64}"},
      {"atom[.{global,shared}].{exch,cas}.b128"},
      {"atom[.{global,shared,shared::cluster}].cas.b16"},
      {"red[.{relaxed,release}][.{cta,cluster,gpu,sys}][.{global,shared,shared::cta,shared::cluster}]"
       ".add.{u32,s32,u64,f32,f64}"},
      {"red[.global].add.noftz[.L2::cache_hint].{f16,f16x2,bf16,bf16x2}"},
      {"red.global.add.{v2,v4}.f32"},
      {"red.global.{add,min,max}.noftz.{v2,v4,v8}.{f16,bf16}"},
      {"red.global.{add,min,max}.noftz.{v2,v4}.{f16x2,bf16x2}"},
      {"red[.{global,shared,shared::cluster}].{min,max}.{u32,s32,u64,s64}"},
      {"red[.{global,shared,shared::cluster}].{and,or,xor}.{b32,b64}"},
      {"red[.{global,shared,shared::cluster}].{inc,dec}.u32"},

      {"cp.async.ca.{shared,shared::cta}.global[.L2::cache_hint][.{L2::64B,L2::128B,L2::256B}]", kComplete},
      {"cp.async.cg.{shared,shared::cta}.global[.L2::cache_hint][.{L2::64B,L2::128B,L2::256B}]", kComplete},
      {"cp.async.{commit_group,wait_group,wait_all}", kComplete},
      {"cp.async.mbarrier.arrive[.noinc][.{shared,shared::cta}].b64", kComplete},
      {"st.async[.weak].shared::cluster.mbarrier::complete_tx::bytes[.{v2,v4}].{b32,u32,s32,f32}", kComplete},
      {"st.async[.weak].shared::cluster.mbarrier::complete_tx::bytes[.v2].{b64,u64,s64,f64}", kComplete},
      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
       ".{add.u32,add.s32,add.u64,min.u32,min.s32,max.u32,max.s32,inc.u32,dec.u32,and.b32,or.b32,xor.b32}",
       kComplete},
  };
  return kRules;
}

}  // namespace gemmtune::emulator
