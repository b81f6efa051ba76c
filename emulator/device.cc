// Device and Module: the public interface.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "emulator/exec.h"
#include "emulator/grid.h"

namespace gemmtune::emulator {
namespace {

std::vector<uint8_t> initial_module_memory(const Program& program) {
  std::vector<uint8_t> memory(program.module_bytes);
  const auto& variables = program.parsed->variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    if (v.space != StateSpace::global && v.space != StateSpace::constant) continue;
    uint8_t* at = memory.data() + program.module_variable_offsets[i];
    std::copy(v.init.begin(), v.init.end(), at);
    for (const Variable::Relocation& r : v.relocations) {
      uint64_t value = 0;
      bool found = false;
      for (size_t j = 0; j < variables.size(); ++j)
        if (variables[j].name == r.symbol) {
          value = kModuleWindow + program.module_variable_offsets[j] + static_cast<uint64_t>(r.addend);
          found = true;
        }
      if (!found) throw PtxError(v.line, "initial value names '" + r.symbol + "', which is no variable");
      std::memcpy(at + r.offset, &value, static_cast<size_t>(std::min(r.width, 8)));
    }
  }
  return memory;
}

LaunchResult refusal(const std::string& kernel, const std::string& why) {
  LaunchResult result;
  Diagnosis d;
  d.check = Check::launch;
  d.kernel = kernel;
  d.message = why;
  result.diagnoses.push_back(d);
  return result;
}

std::function<void(const LaunchResult&)>& launch_observer() {
  static std::function<void(const LaunchResult&)> observer;
  return observer;
}

LaunchResult observed(LaunchResult result) {
  if (launch_observer()) launch_observer()(result);
  return result;
}

}  // namespace

std::string_view name(SchedulePolicy policy) {
  switch (policy) {
    case SchedulePolicy::eager:
      return "eager";
    case SchedulePolicy::lazy:
      return "lazy";
    case SchedulePolicy::random:
      return "random";
  }
  return "?";
}

bool LaunchResult::clean() const {
  if (!completed) return false;
  for (const Diagnosis& d : diagnoses)
    if (d.severity != Severity::warning) return false;
  return true;
}

std::string LaunchResult::text() const {
  std::string out;
  for (const Diagnosis& d : diagnoses) out += to_string(d) + "\n";
  return out;
}

Module::Module(std::string ptx)
    : program_(decode_program(std::move(ptx))),
      memory_(std::make_shared<std::vector<uint8_t>>(initial_module_memory(*program_))) {}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  for (const Function& f : program_->functions)
    if (f.is_entry) names.push_back(f.name);
  return names;
}

std::pair<uint64_t, uint64_t> Module::variable(std::string_view name) const {
  const auto& variables = program_->parsed->variables;
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i].name == name && variables[i].space != StateSpace::shared)
      return {kModuleWindow + program_->module_variable_offsets[i], variables[i].bytes};
  return {0, 0};
}

Device::Device() : memory_(std::make_unique<GlobalMemory>()) {}
Device::~Device() = default;

uint64_t Device::allocate(uint64_t bytes, uint64_t align) { return memory_->allocate(bytes, align); }
void Device::free(uint64_t address) { memory_->free(address); }

void Device::copy_in(uint64_t address, std::span<const uint8_t> bytes) {
  uint8_t* at = memory_->find(address, bytes.size());
  if (!at) throw std::out_of_range(memory_->describe(address));
  std::copy(bytes.begin(), bytes.end(), at);
}

void Device::copy_out(uint64_t address, std::span<uint8_t> bytes) const {
  const uint8_t* at = memory_->find(address, bytes.size());
  if (!at) throw std::out_of_range(memory_->describe(address));
  std::copy(at, at + bytes.size(), bytes.begin());
}

void Device::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  uint8_t* at = memory_->find(address, bytes);
  if (!at) throw std::out_of_range(memory_->describe(address));
  std::fill(at, at + bytes, value);
}

void observe_launches(std::function<void(const LaunchResult&)> observer) {
  launch_observer() = std::move(observer);
}

LaunchResult Device::launch(Module& module, const LaunchConfig& config) {
  Grid grid(module, config, memory_.get());
  if (!grid.refused().empty()) return refusal(config.kernel, grid.refused());
  grid.run();
  return observed(grid.result());
}

std::vector<LaunchResult> Device::launch_stream(std::span<const StreamLaunch> launches) {
  std::vector<LaunchResult> results;
  std::unique_ptr<Grid> ahead;  // still running
  auto finish = [&] {
    while (ahead && ahead->take_turn()) {
    }
    if (ahead) results.push_back(observed(ahead->result()));
    ahead.reset();
  };
  for (const StreamLaunch& next : launches) {
    auto grid = std::make_unique<Grid>(*next.module, next.config, memory_.get());
    if (!grid->refused().empty()) {
      finish();
      results.push_back(refusal(next.config.kernel, grid->refused()));
      return results;
    }
    if (ahead && next.programmatic) {
      // Both run until the one ahead has ended. `eager` lets the dependent run as far as it can at the first
      // moment that it may start, `lazy` starts it at the end, `random` draws.
      const Schedule& schedule = next.config.schedule;
      std::mt19937_64 random(schedule.seed);
      grid->launch().prerequisite_pending = true;
      ahead->share_device();
      grid->share_device();
      bool both = true;
      do {
        if (ahead->launch().ctas_without_trigger != 0 || schedule.policy == SchedulePolicy::lazy) continue;
        if (schedule.policy == SchedulePolicy::random && random() % 2) continue;
        while (both && !grid->blocked()) both = grid->take_turn() && schedule.policy == SchedulePolicy::eager;
        both = true;
      } while (ahead->take_turn());
    }
    finish();
    if (!results.empty() && !results.back().completed) return results;  // the context would be lost
    grid->launch().prerequisite_pending = false;
    ++grid->launch().prerequisite_done;
    ahead = std::move(grid);
  }
  finish();
  return results;
}

}  // namespace gemmtune::emulator
