// Accepted forms of barriers, fences, mbarriers, clusters and bulk copies (PTX ISA 9.7.9.25, 9.7.13;
// ptx-facts 1.1 to 1.5).
#include "emulator/forms.h"

namespace gemmtune::emulator {

std::span<const FormRule> barrier_forms() {
  constexpr FormRows kEach = FormRows::each_choice, kComplete = FormRows::complete;
  constexpr FormTarget kBlackwell = FormTarget::blackwell;
  static constexpr FormRule kRules[] = {
      {"bar[.cta].{sync,arrive,red.popc.u32,red.and.pred,red.or.pred}", kComplete},
      {"barrier[.cta].{sync,arrive,red.popc.u32,red.and.pred,red.or.pred}[.aligned]", kComplete},
      {"bar.warp.sync"},
      {"barrier.cluster.arrive[.{release,relaxed}][.aligned]", kComplete},
      {"barrier.cluster.wait[.acquire][.aligned]", kComplete},

      {"fence[.{sc,acq_rel,acquire,release}].{cta,cluster,gpu,sys}", kComplete},
      {"fence.acquire.sync_restrict::shared::cluster.cluster"},
      {"fence.release.sync_restrict::shared::cta.cluster"},
      {"fence.mbarrier_init.release.cluster"},
      {"fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}", kComplete},
      {"fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster"},
      {"fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster"},
      {"fence.proxy.tensormap::generic.{acquire,release}.{cta,cluster,gpu,sys}", kComplete},
      {"membar.{cta,gl,sys}"},
      {"membar.proxy.alias"},
      {"createpolicy.fractional.{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}"
       "[.{L2::evict_first,L2::evict_unchanged}].b64"},
      {"createpolicy.range[.global].{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}"
       "[.{L2::evict_first,L2::evict_unchanged}].b64"},

      {"mbarrier.init[.{shared,shared::cta}].b64", kComplete},
      {"mbarrier.inval[.{shared,shared::cta}].b64", kComplete},
      {"mbarrier.{arrive,arrive_drop}[.expect_tx][.{release.cta,release.cluster,relaxed.cta,relaxed.cluster}]"
       "[.{shared,shared::cta,shared::cluster}].b64",
       kComplete},
      {"mbarrier.{arrive,arrive_drop}.noComplete[.release.cta][.{shared,shared::cta}].b64", kComplete},
      {"mbarrier.{expect_tx,complete_tx}[.{relaxed.cta,relaxed.cluster}][.{shared,shared::cta,shared::"
       "cluster}].b64",
       kComplete},
      {"mbarrier.{test_wait,try_wait}[.parity][.{acquire.cta,acquire.cluster,relaxed.cta,relaxed.cluster}]"
       "[.{shared,shared::cta}].b64",
       kComplete},
      {"mbarrier.pending_count.b64"},

      {"mapa[.shared::cluster].{u32,u64}"},
      {"getctarank[.shared::cluster].{u32,u64}"},
      {"clusterlaunchcontrol.try_cancel.async[.shared::cta].mbarrier::complete_tx::bytes"
       "[.multicast::cluster::all].b128",
       kComplete, kBlackwell},
      {"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128", kEach, kBlackwell},
      {"clusterlaunchcontrol.query_cancel"
       ".{get_first_ctaid.v4,get_first_ctaid::x,get_first_ctaid::y,get_first_ctaid::z}.b32.b128",
       kComplete, kBlackwell},
      {"setmaxnreg.{inc,dec}.sync.aligned.u32"},
      {"griddepcontrol.{wait,launch_dependents}"},
  };
  return kRules;
}

std::span<const FormRule> bulk_copy_forms() {
  constexpr FormRows kComplete = FormRows::complete;
  constexpr FormTarget kAny = FormTarget::any, kBlackwell = FormTarget::blackwell;
  static constexpr FormRule kRules[] = {
      {"cp.async.bulk.commit_group"},
      {"cp.async.bulk.wait_group[.read]"},
      {"cp.async.bulk.{shared::cluster,shared::cta}.global.mbarrier::complete_tx::bytes[.L2::cache_hint]",
       kComplete},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster[.L2::cache_"
       "hint]",
       kComplete},
      {"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", kComplete},
      {"cp.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint]", kComplete},
      {"cp.async.bulk.prefetch.L2.global[.L2::cache_hint]", kComplete},
      {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
       ".{add.u32,add.s32,add.u64,min.u32,min.s32,max.u32,max.s32,inc.u32,dec.u32,and.b32,or.b32,xor.b32}",
       kComplete},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group[.L2::cache_hint]"
       ".{add.u32,add.s32,add.u64,add.f32,add.f64,add.noftz.f16,add.noftz.bf16,min.u32,min.s32,min.u64,min."
       "s64,"
       "min.f16,min.bf16,max.u32,max.s32,max.u64,max.s64,max.f16,max.bf16,inc.u32,dec.u32,and.b32,and.b64,or."
       "b32,"
       "or.b64,xor.b32,xor.b64}",
       kComplete},

      {"cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.{shared::cluster,shared::cta}.global[.tile]"
       ".mbarrier::complete_tx::bytes[.L2::cache_hint]",
       kComplete},
      {"cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cluster.global[.tile].mbarrier::complete_tx::bytes"
       ".multicast::cluster[.L2::cache_hint]",
       kComplete},
      {"cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.shared::cluster.global[.tile].mbarrier::complete_tx::bytes"
       "[.multicast::cluster].{cta_group::1,cta_group::2}[.L2::cache_hint]",
       kComplete, kBlackwell},
      {"cp.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta[.tile].bulk_group[.L2::cache_hint]",
       kComplete},
      {"cp.reduce.async.bulk.tensor.{1d,2d,3d,4d,5d}.global.shared::cta.{add,min,max,inc,dec,and,or,xor}[."
       "tile]"
       ".bulk_group[.L2::cache_hint]",
       kComplete},
      {"cp.async.bulk.prefetch.tensor.{1d,2d,3d,4d,5d}.L2.global[.tile][.L2::cache_hint]", kComplete},

      {"tensormap.replace.tile.{global_address.b1024.b64,rank.b1024.b32,box_dim.b1024.b32,global_dim.b1024."
       "b32,"
       "global_stride.b1024.b64,element_stride.b1024.b32,elemtype.b1024.b32,interleave_layout.b1024.b32,"
       "swizzle_mode.b1024.b32,fill_mode.b1024.b32}[.{global,shared::cta}]",
       kComplete},
      {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{cta,cluster,gpu,sys}.sync."
       "aligned",
       kComplete},
  };
  (void)kAny;
  return kRules;
}

}  // namespace gemmtune::emulator
