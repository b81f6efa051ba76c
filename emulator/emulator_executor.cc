#include "emulator/emulator_executor.h"

#include <fmt/format.h>

#include "emulator/emulated_gemm.h"
#include "search/proxy_shapes.h"

namespace gemmtune {
namespace {

// Few SMs keep "more tiles than CTAs" small; still two clusters at once, and some CTAs without a cluster.
constexpr int kSmCount = 16;
int sm_count(const TileShape& tile) { return std::max(6, 2 * tile.cluster_m * tile.cluster_n); }

constexpr uint64_t kSeed = 20240229;
// Of one cluster. The largest proxy takes some hundred thousand: more is a loop that never ends.
constexpr uint64_t kInstructionLimit = 50'000'000;

}  // namespace

EmulatorExecutor::EmulatorExecutor(const ArchSpec& arch) {
  device_.name = "emulator";
  device_.arch = arch.name;
  device_.sm_count = kSmCount;
  device_.driver_version = fmt::format("emulator {}", emulator::kVersion);
}

StepResult EmulatorExecutor::begin_problem(const Problem& problem, float alpha, float beta) {
  problem_ = problem;
  alpha_ = alpha;
  beta_ = beta;
  loaded_.clear();
  return {};
}

StepResult EmulatorExecutor::prepare(int handle, const Variant& variant, const CompiledKernel& kernel) {
  loaded_[handle] = {variant, kernel.ptx};
  return {};
}

ValidationResult EmulatorExecutor::validate(int handle) {
  const Loaded& loaded = loaded_.at(handle);
  const KernelFamily& family = *loaded.variant.family;
  std::string identity = fmt::format("{} {} {} {}", to_string(loaded.variant.cls),
                                     to_text(family.knobs(), loaded.variant.config), alpha_, beta_);
  auto found = proven_.find(identity);
  if (found == proven_.end()) found = proven_.emplace(identity, prove(loaded)).first;
  return found->second;
}

SampleResult EmulatorExecutor::sample(int, Regime, bool) {
  return {{Outcome::launch_failed, "the emulator takes no times"}, {}};
}

ValidationResult EmulatorExecutor::prove(const Loaded& loaded) const {
  const Variant& v = loaded.variant;
  ValidationResult result;
  result.validation.by = ValidatedBy::emulator;
  auto fail = [&](Outcome outcome, std::string message) {
    result.outcome = outcome;
    result.message = std::move(message);
    return result;
  };
  std::optional<emulator::Module> module;
  try {
    module.emplace(loaded.ptx);
  } catch (const emulator::PtxError& error) {
    return fail(Outcome::launch_failed,
                fmt::format("the emulator does not understand the PTX: {}", error.what()));
  }
  TileShape tile = v.family->tile(v.config, v.cls);
  int sms = sm_count(tile);
  using emulator::SchedulePolicy;
  const emulator::Schedule schedules[] = {{SchedulePolicy::eager, 0}, {SchedulePolicy::random, kSeed}};
  for (const Shape& shape : proxy_shapes(tile, v.cls, sms))
    for (Fill fill : kAllFills) {
      EmulatedGemm gemm({v.cls, shape}, fill, alpha_, beta_);
      ValidationCase one;
      std::vector<uint8_t> first;
      for (const emulator::Schedule& schedule : schedules) {
        emulator::LaunchConfig how;
        how.schedule = schedule;
        how.instruction_limit = kInstructionLimit;
        emulator::LaunchResult ran = gemm.launch(*module, v, sms, how);
        if (!ran.clean()) {
          std::string text =
              ran.diagnoses.empty() ? "did not complete" : emulator::to_string(ran.diagnoses.front());
          bool hung = !ran.diagnoses.empty() && (ran.diagnoses.front().check == emulator::Check::deadlock ||
                                                 ran.diagnoses.front().check == emulator::Check::livelock);
          return fail(hung ? Outcome::timed_out : Outcome::crashed,
                      fmt::format("{} fill at {}, schedule {}: {}", name(fill), to_string(shape),
                                  emulator::name(schedule.policy), text));
        }
        std::vector<uint8_t> bytes = gemm.output();
        if (first.empty()) {
          one = gemm.compare(bytes);
          first = std::move(bytes);
        } else {
          one.repeatable = bytes == first;
        }
      }
      result.validation.cases.push_back(one);
      if (!one.passed())
        return fail(
            one.mismatches > 0 ? Outcome::wrong_result : Outcome::unstable,
            fmt::format("{} fill at {}: {}", name(fill), to_string(shape),
                        one.mismatches > 0
                            ? fmt::format("{} of {} elements wrong, first {}", one.mismatches, one.elements,
                                          one.first_mismatch)
                            : std::string("a second launch, under another schedule, gave other bits")));
    }
  return result;
}

}  // namespace gemmtune
