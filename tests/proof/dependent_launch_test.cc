// Programmatic dependent launch of the families' kernels: a chain of two GEMMs, D of the first being A of the
// second, which starts while the first still runs and must not read or write too early.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/emulated_gemm.h"
#include "kernel_templates/render.h"
#include "search/space.h"
#include "tests/proof/family_case.h"
#include "tests/proof/proof.h"

namespace gemmtune {
namespace {

constexpr int64_t kM = 200, kN = 136, kK = 192;

struct Chain {
  emulator::Device device;
  uint64_t a, b, d, b2, d2, workspace;

  /// A and B of ones, B2 the identity of kN x kN: both results are kK everywhere.
  Chain() {
    const std::vector<uint16_t> ones(static_cast<size_t>(kM * kK), to_f16_bits(1));
    std::vector<uint16_t> identity(static_cast<size_t>(kN * kN), 0);
    for (size_t i = 0; i < static_cast<size_t>(kN); ++i)
      identity[i * static_cast<size_t>(kN + 1)] = to_f16_bits(1);
    a = upload(ones, kM * kK);
    b = upload(ones, kN * kK);
    b2 = upload(identity, kN * kN);
    d = device.allocate(2 * kM * kN);
    d2 = device.allocate(2 * kM * kN);
    device.fill(d, 0, 2 * kM * kN);
    workspace = device.allocate(1 << 24);
    device.fill(workspace, 0, 1 << 24);
  }
  uint64_t upload(const std::vector<uint16_t>& values, int64_t count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(2 * count));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    uint64_t address = device.allocate(bytes.size());
    device.copy_in(address, bytes);
    return address;
  }
};

emulator::LaunchConfig launch_of(const Variant& v, const Shape& shape,
                                 const std::map<Operand, uint64_t>& addresses, emulator::Schedule schedule) {
  const TileShape tile = v.family->tile(v.config, v.cls);
  const int cluster = tile.cluster_m * tile.cluster_n, sm_count = 4 * cluster;
  LaunchPlan plan = v.family->plan(v.config, v.cls, *v.arch, shape, {sm_count, 4}, 1, 0);
  EXPECT_TRUE(plan.programmatic);
  EXPECT_LE(plan.workspace_bytes, 1 << 24);
  emulator::LaunchConfig how = planned_launch({}, v, plan, addresses);
  how.sm_count = sm_count;
  how.schedule = schedule;
  return how;
}

/// "" or what is wrong with the second result.
std::string chain_fault(const Variant& v, const std::string& ptx, emulator::Schedule schedule) {
  Chain chain;
  emulator::Module module(ptx);
  std::map<Operand, uint64_t> first = {{Operand::a, chain.a},
                                       {Operand::b, chain.b},
                                       {Operand::c, 0},
                                       {Operand::d, chain.d},
                                       {Operand::workspace, chain.workspace}};
  std::map<Operand, uint64_t> second = first;
  second[Operand::a] = chain.d;
  second[Operand::b] = chain.b2;
  second[Operand::d] = chain.d2;
  std::vector<emulator::StreamLaunch> stream = {
      {&module, launch_of(v, {kM, kN, kK}, first, schedule), false},
      {&module, launch_of(v, {kM, kN, kN}, second, schedule), true}};
  for (const emulator::LaunchResult& ran : chain.device.launch_stream(stream))
    if (!ran.clean()) return ran.text();
  std::vector<uint8_t> bytes(2 * kM * kN);
  chain.device.copy_out(chain.d2, bytes);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, &bytes[i], 2);
    wrong += from_f16_bits(bits) != static_cast<float>(kK);
  }
  return wrong == 0 ? "" : std::to_string(wrong) + " elements are not from the first launch's results";
}

constexpr FamilyCase kCases[] = {
    {"sm_100a", "pdl=yes"},
    {"sm_100a", "pdl=yes,cta_group=2,cluster_m=2,persistent=static,acc_slots=2,epilogue=tma_store,tile_n=64"},
    {"sm_100a", "pdl=yes,split_k=2,tile_n=64,prefetch=2"},
    {"sm_100a", "pdl=yes,persistent=clc,tile_n=32"},
    {"sm_100a", "pdl=yes,warp_specialized=no,loader=cp_async,stages=2"},
    {"sm_90a", "pdl=yes"},
    {"sm_90a", "pdl=yes,cluster_m=2,tile_n=64,persistent=static"},
};

class DependentLaunch : public testing::TestWithParam<FamilyCase> {};

TEST_P(DependentLaunch, ReadsWhatTheLaunchBeforeWrote) {
  using emulator::SchedulePolicy;
  const ArchSpec& arch = find_arch(GetParam().arch);
  const KernelFamily& family = family_for(arch);
  Variant v{&family, &arch, ProblemClass{DType::f16, DType::f16},
            parse_config(family.knobs(), GetParam().config)};
  ASSERT_TRUE(Space(family, arch, v.cls, Shape{kM, kN, kK}).legal(v.config));
  CompileResult compiled = Nvrtc().compile({"", render(v), std::string(arch.name)});
  ASSERT_TRUE(compiled.ok) << compiled.log;
  const emulator::Schedule eager{SchedulePolicy::eager, 0};
  for (emulator::Schedule schedule : {eager, {SchedulePolicy::lazy, 0}, {SchedulePolicy::random, 1}})
    EXPECT_EQ(chain_fault(v, compiled.ptx, schedule), "") << emulator::name(schedule.policy);
  // The wait is what makes it right.
  std::string broken = compiled.ptx;
  const std::string wait = "griddepcontrol.wait;";
  size_t at = broken.find(wait);
  ASSERT_NE(at, std::string::npos);
  broken.erase(at, wait.size());
  EXPECT_NE(chain_fault(v, broken, eager), "");
}

INSTANTIATE_TEST_SUITE_P(Families, DependentLaunch, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace gemmtune
