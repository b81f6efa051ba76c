// Programmatic dependent launch: the second kernel of a stream starts before the first has ended, and
// griddepcontrol.wait is what keeps it from reading too early.
#include <gtest/gtest.h>

#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

std::string module_text(const std::string& first, const std::string& second) {
  const std::string head = R"(
  .reg .b64 out, o; .reg .b32 id, v, i; .reg .pred p;
  ld.param.u64 out, [out_param]; mov.u32 id, %ctaid.x; mul.wide.u32 o, id, 4; add.u64 o, out, o;)";
  return ".version 9.0\n.target sm_90a\n.address_size 64\n"
         ".visible .entry first(.param .u64 out_param) {" +
         head + first + "\nret; }\n.visible .entry second(.param .u64 out_param) {" + head + second +
         "\nret; }\n";
}

const char* kTrigger = "griddepcontrol.launch_dependents;";
/// The first kernel writes 7, some time after the trigger.
std::string writes_late(const std::string& trigger) {
  return trigger + R"(
  mov.u32 i, 0; SPIN: add.u32 i, i, 1; nanosleep.u32 20; setp.lt.u32 p, i, 50; @p bra SPIN;
  st.global.u32 [o], 7;)";
}
/// The second kernel copies what it finds.
std::string copies(const std::string& wait) {
  return wait + "ld.global.u32 v, [o]; st.global.u32 [o+1024], v;";
}

struct Outcome {
  std::vector<LaunchResult> launches;
  std::vector<uint32_t> seen;
};

Outcome run(const std::string& first, const std::string& second, Schedule schedule,
            bool programmatic = true) {
  Device device;
  Module module(module_text(first, second));
  uint64_t out = device.allocate(2048);
  device.fill(out, 0, 2048);
  LaunchConfig config;
  config.grid = {4, 1, 1};
  config.block = {32, 1, 1};
  config.schedule = schedule;
  config.params.resize(8);
  std::memcpy(config.params.data(), &out, 8);
  StreamLaunch a{&module, config, false}, b{&module, config, programmatic};
  a.config.kernel = "first";
  b.config.kernel = "second";
  std::vector<StreamLaunch> stream = {a, b};
  Outcome outcome;
  outcome.launches = device.launch_stream(stream);
  outcome.seen = read_buffer<uint32_t>(device, out + 1024, 4);
  return outcome;
}

const std::vector<uint32_t> kFresh(4, 7), kStale(4, 0);

TEST(DependentLaunch, WaitSeesWhatTheGridAheadWrote) {
  std::vector<Schedule> schedules = {{SchedulePolicy::eager, 0}, {SchedulePolicy::lazy, 0}};
  for (uint64_t seed = 1; seed <= 8; ++seed) schedules.push_back({SchedulePolicy::random, seed});
  for (const Schedule& schedule : schedules) {
    Outcome o = run(writes_late(kTrigger), copies("griddepcontrol.wait;"), schedule);
    ASSERT_EQ(o.launches.size(), 2u);
    EXPECT_TRUE(o.launches[0].clean() && o.launches[1].clean()) << o.launches[1].text();
    EXPECT_EQ(o.seen, kFresh) << name(schedule.policy);
  }
}

TEST(DependentLaunch, WithoutWaitItReadsWhatWasThereBefore) {
  EXPECT_EQ(run(writes_late(kTrigger), copies(""), {SchedulePolicy::eager, 0}).seen, kStale);
  EXPECT_EQ(run(writes_late(kTrigger), copies(""), {SchedulePolicy::lazy, 0}).seen, kFresh);
  int stale = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed)
    stale += run(writes_late(kTrigger), copies(""), {SchedulePolicy::random, seed}).seen != kFresh;
  EXPECT_GT(stale, 0);
  EXPECT_LT(stale, 16);
}

TEST(DependentLaunch, StartsEarlyOnlyIfEveryCtaHasTriggered) {
  Schedule eager{SchedulePolicy::eager, 0};
  EXPECT_EQ(run(writes_late(""), copies(""), eager).seen, kFresh);
  // CTA 3 holds the dependent back until it has exited, and so written; the others are still at it.
  std::vector<uint32_t> seen =
      run(writes_late("setp.ne.u32 p, id, 3; @p griddepcontrol.launch_dependents;"), copies(""), eager).seen;
  EXPECT_EQ(seen[3], 7u);
  EXPECT_NE(seen, kFresh);
  EXPECT_EQ(run(writes_late(kTrigger), copies(""), eager, false).seen, kFresh);
}

TEST(DependentLaunch, AFaultAheadEndsTheStream) {
  Outcome o = run("trap;", copies("griddepcontrol.wait;"), {SchedulePolicy::lazy, 0});
  ASSERT_EQ(o.launches.size(), 1u);
  EXPECT_FALSE(o.launches[0].completed);
}

}  // namespace
}  // namespace gemmtune::emulator
