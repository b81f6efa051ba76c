// Device and Module: the public interface, and the loop over the clusters of a launch.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

constexpr uint32_t kMaxSmemBytes = 232448 + kSharedBase;  // opt-in maximum and the reserved kilobyte
constexpr uint64_t kTurnInstructions = 200'000;           ///< of one cluster before another gets its turn

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

std::unique_ptr<Cluster> make_cluster(Launch& launch, uint32_t slot, uint64_t index) {
  auto cluster = std::make_unique<Cluster>();
  cluster->launch = &launch;
  cluster->slot = slot;
  cluster->random.seed(launch.config.schedule.seed * 0x9e3779b97f4a7c15ull + index + 1);
  cluster->executed.resize(launch.program->code.size());
  const Dim3& c = launch.config.cluster;
  const Dim3& grid = launch.cluster_grid;
  Dim3 at{static_cast<uint32_t>(index % grid.x), static_cast<uint32_t>(index / grid.x % grid.y),
          static_cast<uint32_t>(index / grid.x / grid.y)};
  cluster->first_ctaid = {at.x * c.x, at.y * c.y, at.z * c.z};
  for (uint32_t rank = 0; rank < launch.cluster_size; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->ctaid = {cluster->first_ctaid.x + rank % c.x, cluster->first_ctaid.y + rank / c.x % c.y,
                  cluster->first_ctaid.z + rank / c.x / c.y};
    cta->smem.assign(launch.smem_bytes, 0xff);
    cta->shadow.resize((launch.smem_bytes >> kShadowShift) + 2);
    cta->live_threads = launch.threads;
    for (uint32_t i = 0; i < launch.warps; ++i) {
      auto w = std::make_unique<Warp>();
      w->cta = cta.get();
      w->index = static_cast<int>(i);
      uint32_t threads = std::min(32u, launch.threads - i * 32);
      w->live = w->initial = threads == 32 ? kAllLanes : (1u << threads) - 1;
      w->registers = std::make_unique<uint8_t[]>(launch.function->register_bytes + 64);
      if (launch.function->local_bytes)
        w->local = std::make_unique<uint8_t[]>(size_t{launch.function->local_bytes} * 32);
      Fragment& f = w->fragments[0];
      f.state = Fragment::State::ready;
      f.mask = w->live;
      f.pc = launch.function->entry_pc;
      w->used = 1;
      cta->warps.push_back(std::move(w));
    }
    cluster->ctas.push_back(std::move(cta));
  }
  return cluster;
}

std::string check_launch(const Launch& launch) {
  const LaunchConfig& c = launch.config;
  const Function& f = *launch.function;
  auto zero = [](const Dim3& d) { return d.x == 0 || d.y == 0 || d.z == 0; };
  if (zero(c.grid) || zero(c.block)) return "grid or block has a zero dimension";
  if (uint64_t{c.block.x} * c.block.y * c.block.z > 1024) return "block has more than 1024 threads";
  if (uint64_t{c.grid.x} * c.grid.y * c.grid.z > (1ull << 31)) return "grid has more than 2^31 CTAs";
  if (uint64_t{c.cluster.x} * c.cluster.y * c.cluster.z > 16) return "cluster has more than 16 CTAs";
  if (c.grid.x % c.cluster.x || c.grid.y % c.cluster.y || c.grid.z % c.cluster.z)
    return fmt::format("grid {}x{}x{} is not divisible by cluster {}x{}x{}", c.grid.x, c.grid.y, c.grid.z,
                       c.cluster.x, c.cluster.y, c.cluster.z);
  if (f.required_cluster[0] && (f.required_cluster[0] != c.cluster.x ||
                                f.required_cluster[1] != c.cluster.y || f.required_cluster[2] != c.cluster.z))
    return fmt::format("kernel requires cluster {}x{}x{}", f.required_cluster[0], f.required_cluster[1],
                       f.required_cluster[2]);
  if (f.required_block[0] && (f.required_block[0] != c.block.x || f.required_block[1] != c.block.y ||
                              f.required_block[2] != c.block.z))
    return fmt::format("kernel requires block {}x{}x{}", f.required_block[0], f.required_block[1],
                       f.required_block[2]);
  if (f.max_block[0]) {
    uint64_t most = uint64_t{f.max_block[0]} * f.max_block[1] * f.max_block[2];
    if (uint64_t{c.block.x} * c.block.y * c.block.z > most)
      return fmt::format("block has more threads than .maxntid ({})", most);
  }
  if (launch.smem_bytes > kMaxSmemBytes)
    return fmt::format("{} bytes of shared memory exceed 232448", launch.smem_bytes - kSharedBase);
  if (c.params.size() < f.param_bytes)
    return fmt::format("{} parameter bytes given, the kernel takes {}", c.params.size(), f.param_bytes);
  return {};
}

void merge_findings(LaunchResult& result, const Cluster& cluster, const Program& program,
                    std::map<std::pair<int, int>, size_t>& index) {
  for (const Diagnosis& d : cluster.findings) {
    auto [it, fresh] = index.try_emplace(
        {static_cast<int>(d.check) * 4 + static_cast<int>(d.severity), d.line}, result.diagnoses.size());
    if (fresh)
      result.diagnoses.push_back(d);
    else
      result.diagnoses[it->second].count += d.count;
  }
  for (size_t pc = 0; pc < cluster.executed.size(); ++pc)
    if (cluster.executed[pc]) {
      const Instr& in = program.code[pc];
      if (in.form < program.forms.size()) result.executed[program.forms[in.form]] += cluster.executed[pc];
      result.executed_by_line[in.line] += cluster.executed[pc];
    }
  result.warp_instructions += cluster.instructions;
}

std::function<void(const LaunchResult&)>& launch_observer() {
  static std::function<void(const LaunchResult&)> observer;
  return observer;
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
  LaunchResult result;
  const Program& program = module.program();
  Launch launch;
  launch.program = &program;
  launch.config = config;
  launch.memory = memory_.get();
  launch.module_memory = &module.memory();
  launch.function = program.find_entry(config.kernel);
  auto refuse = [&](const std::string& why) {
    Diagnosis d;
    d.check = Check::launch;
    d.kernel = config.kernel;
    d.message = why;
    result.diagnoses.push_back(d);
    return result;
  };
  if (!launch.function) return refuse("no such kernel");
  const Function& f = *launch.function;
  Dim3& cluster = launch.config.cluster;
  if (cluster.x == 0)
    cluster = f.required_cluster[0]
                  ? Dim3{f.required_cluster[0], f.required_cluster[1], f.required_cluster[2]}
                  : Dim3{1, 1, 1};
  cluster.y = std::max(1u, cluster.y);
  cluster.z = std::max(1u, cluster.z);
  launch.params = config.params;
  launch.check_races = config.check_races;
  uint32_t base = kSharedBase + f.static_smem_bytes;
  if (config.dynamic_smem_bytes) {
    uint32_t align = f.static_smem_bytes ? f.dynamic_smem_align : 1;
    base = (base + align - 1) & ~(align - 1);
  }
  uint64_t smem = uint64_t{base} + config.dynamic_smem_bytes;
  launch.smem_bytes = static_cast<uint32_t>(std::min<uint64_t>(smem, 1u << 30));
  if (std::string why = check_launch(launch); !why.empty()) return refuse(why);
  launch.threads = config.block.x * config.block.y * config.block.z;
  launch.warps = (launch.threads + 31) / 32;
  launch.cluster_size = cluster.x * cluster.y * cluster.z;
  launch.cluster_grid = {config.grid.x / cluster.x, config.grid.y / cluster.y, config.grid.z / cluster.z};
  uint64_t clusters = uint64_t{launch.cluster_grid.x} * launch.cluster_grid.y * launch.cluster_grid.z;
  uint64_t slots = std::min<uint64_t>(
      clusters, std::max(1u, static_cast<uint32_t>(std::max(config.sm_count, 1)) / launch.cluster_size));
  launch.pending.resize(slots);
  for (uint64_t i = 0; i < clusters; ++i) launch.pending[i % slots].push_back(i);
  std::mutex print_mutex;
  launch.print = [&](const std::string& text) {
    std::lock_guard lock(print_mutex);
    result.printed += text;
  };

  // Findings are collected by slot, so that the result does not depend on the host's threads.
  std::vector<std::vector<std::unique_ptr<Cluster>>> done(slots);
  std::atomic<bool> abort{false};
  auto retire = [&](uint64_t slot, std::unique_ptr<Cluster> c) {
    if (c->failed) abort = true;
    c->ctas.clear();
    // Counters of clusters are summed as they finish; only the first keeps its vector.
    if (!done[slot].empty() && c->findings.empty()) {
      Cluster& sum = *done[slot].front();
      for (size_t pc = 0; pc < sum.executed.size(); ++pc) sum.executed[pc] += c->executed[pc];
      sum.instructions += c->instructions;
      return;
    }
    done[slot].push_back(std::move(c));
  };
  unsigned threads = config.host_threads > 0 ? static_cast<unsigned>(config.host_threads)
                                             : std::max(1u, std::thread::hardware_concurrency());
  if (config.trace) threads = 1;
  // A cluster that spins must be stopped before it looks like a livelock: the one it waits for may not have
  // started.
  uint64_t turn = std::clamp<uint64_t>(config.livelock_instructions / 4, 1, kTurnInstructions);
  if (!program.clusters_communicate) {
    std::atomic<uint64_t> next{0};
    auto work = [&] {
      for (uint64_t slot; (slot = next++) < slots && !abort;)
        while (!launch.pending[slot].empty() && !abort) {
          uint64_t index = launch.pending[slot].front();
          launch.pending[slot].pop_front();
          auto c = make_cluster(launch, static_cast<uint32_t>(slot), index);
          while (c->step(kTurnInstructions) == Cluster::Status::progress && !abort) {
          }
          retire(slot, std::move(c));
        }
    };
    std::vector<std::thread> pool;
    for (unsigned i = 1; i < std::min<uint64_t>(threads, slots); ++i) pool.emplace_back(work);
    work();
    for (std::thread& t : pool) t.join();
  } else {
    // Clusters that may wait for each other take turns on this thread.
    std::vector<std::pair<uint64_t, std::unique_ptr<Cluster>>> active;
    uint64_t started = 0;
    while (!abort && (started < slots || !active.empty())) {
      if (started < slots) {
        uint64_t index = launch.pending[started].front();
        launch.pending[started].pop_front();
        active.emplace_back(started, make_cluster(launch, static_cast<uint32_t>(started), index));
        ++started;
      }
      uint64_t events = 0;
      for (auto& [slot, c] : active) events += c->events;
      for (auto& [slot, c] : active) {
        if (abort) break;
        if (c->step(turn) != Cluster::Status::finished) continue;
        bool failed = c->failed;
        retire(slot, std::move(c));
        if (!failed && !launch.pending[slot].empty()) {
          uint64_t index = launch.pending[slot].front();
          launch.pending[slot].pop_front();
          c = make_cluster(launch, static_cast<uint32_t>(slot), index);
        }
      }
      std::erase_if(active, [](const auto& a) { return !a.second; });
      uint64_t events_after = 0;
      for (auto& [slot, c] : active) events_after += c->events;
      // Somebody else's work is what a spinning cluster waits for.
      if (events_after != events)
        for (auto& [slot, c] : active) c->last_event_instructions = c->instructions;
    }
  }
  std::map<std::pair<int, int>, size_t> index;
  for (const auto& slot : done)
    for (const auto& c : slot) merge_findings(result, *c, program, index);
  result.completed = !abort;
  if (launch_observer()) launch_observer()(result);
  return result;
}

}  // namespace gemmtune::emulator
