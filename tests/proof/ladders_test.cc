// Every step of every ladder in examples/ladders: as designed by the compiler's account, and right on the
// emulator under every schedule.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kernel_templates/ladder.h"
#include "kernel_templates/render.h"
#include "tests/proof/proof.h"

namespace gemmtune {
namespace {

std::vector<std::filesystem::path> ladder_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(GEMMTUNE_SOURCE_DIR "/examples/ladders"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Ladders : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Ladders, EveryStepIsAsDesignedAndRight) {
  using emulator::SchedulePolicy;
  const ArchSpec& arch = find_arch("sm_100a");
  const KernelFamily& family = family_for(arch);
  Nvrtc nvrtc;
  for (const LadderStep& step : read_ladder(GetParam(), family, arch)) {
    SCOPED_TRACE(fmt::format("{}:{}: {}", GetParam().filename().string(), step.line, step.name));
    Variant v{&family, &arch, step.cls, step.config};
    CompileResult compiled = nvrtc.compile({"", render(v), std::string(arch.name)});
    EXPECT_EQ(static_fault(v, compiled), "");
    const InstructionCounts& c = compiled.evidence.counts;
    const int counts[] = {c.mma,           c.tma_load,  c.commit,
                          c.mbarrier_wait, c.tmem_load, family.tmem_columns(step.config)};
    for (size_t i = 0; i < std::size(counts); ++i)
      if (auto want = (step.*kLadderColumns[i].count).ours) {
        EXPECT_EQ(counts[i], *want) << kLadderColumns[i].name;
      }
    for (Fill fill : {Fill::sharp, Fill::rounding})
      for (SchedulePolicy policy : {SchedulePolicy::eager, SchedulePolicy::lazy, SchedulePolicy::random}) {
        Trip trip = ragged_trip(v, 1);
        trip.fill = fill;
        trip.schedule = {policy, 4};
        trip.host_threads = 0;
        EXPECT_EQ(run_fault(v, compiled.ptx, trip), "") << name(fill) << " " << emulator::name(policy);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, Ladders, testing::ValuesIn(ladder_files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace gemmtune
