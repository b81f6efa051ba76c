// Ablated kernels: what is left is all there, what is left out is gone, and they run to their end.
#include <gtest/gtest.h>

#include <stdexcept>

#include "kernel_templates/render.h"
#include "tests/proof/cubin.h"
#include "tests/proof/family_case.h"
#include "tests/proof/proof.h"

namespace gemmtune {
namespace {

constexpr FamilyCase kCases[] = {
    {"sm_100a", "stages=3"},
    {"sm_100a",
     "tile_n=64,cta_group=2,cluster_m=2,cluster_n=2,persistent=static,acc_slots=2,epilogue=tma_store"},
    {"sm_100a", "tile_n=64,persistent=clc,split_k=2"},
    {"sm_100a", "tile_n=64,stages=2,warp_specialized=no"},
    {"sm_90a", "stages=3"},
    {"sm_90a", "tile_n=64,cluster_n=2,persistent=static"},
};

class Ablated : public testing::TestWithParam<FamilyCase> {
 protected:
  const ArchSpec& arch_ = find_arch(GetParam().arch);
  const KernelFamily& family_ = family_for(arch_);
  Nvrtc nvrtc_;

  Variant variant(Ablation part) const {
    return {&family_, &arch_, {}, parse_config(family_.knobs(), GetParam().config), part};
  }
  CompileResult compile(const Variant& v) const {
    CompileResult compiled = nvrtc_.compile({"", render(v), std::string(arch_.name)});
    EXPECT_TRUE(compiled.ok) << compiled.log;
    return compiled;
  }
};

constexpr Ablation kParts[] = {Ablation::mma, Ablation::loads, Ablation::epilogue};

TEST_P(Ablated, LeavesOutTheOtherParts) {
  const InstructionCounts whole = compile(variant(Ablation::none)).evidence.counts;
  for (Ablation part : kParts) {
    const InstructionCounts counts = compile(variant(part)).evidence.counts;
    EXPECT_EQ(counts.mma, part == Ablation::mma ? whole.mma : 0) << name(part);
    EXPECT_EQ(counts.tma_load, part == Ablation::loads ? whole.tma_load : 0) << name(part);
    EXPECT_EQ(counts.tma_store, part == Ablation::epilogue ? whole.tma_store : 0) << name(part);
    EXPECT_EQ(counts.tmem_load, part == Ablation::epilogue ? whole.tmem_load : 0) << name(part);
    EXPECT_EQ(counts.tmem_alloc, whole.tmem_alloc) << name(part);
  }
}

// The assembler leaves out MMAs whose sums nobody reads: in the PTX they are still there.
TEST_P(Ablated, KeepsItsMachineInstructions) {
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm: set GEMMTUNE_NVDISASM or CUDA_HOME";
  const InstructionCounts whole = count_sass(compile(variant(Ablation::none)).cubin);
  EXPECT_GT(whole.mma, 0);
  EXPECT_EQ(count_sass(compile(variant(Ablation::mma)).cubin).mma, whole.mma);
  EXPECT_EQ(count_sass(compile(variant(Ablation::loads)).cubin).tma_load, whole.tma_load);
  EXPECT_EQ(count_sass(compile(variant(Ablation::epilogue)).cubin).tmem_load, whole.tmem_load);
}

// Only loads alone are clean: MMAs alone read what no copy has brought, an epilogue alone what no MMA has
// written.
TEST_P(Ablated, RunsToItsEnd) {
  using emulator::SchedulePolicy;
  for (Ablation part : kParts) {
    Variant v = variant(part);
    CompileResult compiled = compile(v);
    for (SchedulePolicy policy : {SchedulePolicy::eager, SchedulePolicy::lazy}) {
      Trip trip = ragged_trip(v, 1);
      trip.schedule = {policy, 0};
      std::string fault = run_fault(v, compiled.ptx, trip);
      EXPECT_EQ(fault.find("deadlock"), std::string::npos) << name(part) << ": " << fault;
      if (part == Ablation::loads) {
        EXPECT_NE(fault.find("elements wrong"), std::string::npos) << fault;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Ablated, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace gemmtune
