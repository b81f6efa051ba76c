#include "emulator/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

constexpr uint32_t kMaxSmemBytes = 232448 + kSharedBase;  // opt-in maximum and the reserved kilobyte
constexpr uint64_t kTurnInstructions = 200'000;           ///< of one cluster before another gets its turn
constexpr uint64_t kSharedTurnInstructions = 64;          ///< with another grid on the device

std::unique_ptr<Cluster> make_cluster(Launch& launch, uint32_t slot, const ClusterPlace& place) {
  auto cluster = std::make_unique<Cluster>();
  cluster->launch = &launch;
  cluster->slot = slot;
  cluster->place = place;
  const Dim3 &c = place.shape, first = place.first_ctaid(), &grid = launch.config.grid;
  uint64_t index = place.at.x + uint64_t{grid.x / c.x} * (place.at.y + uint64_t{grid.y / c.y} * place.at.z);
  cluster->random.seed(launch.config.schedule.seed * 0x9e3779b97f4a7c15ull + index + 1);
  cluster->executed.resize(launch.program->code.size());
  for (uint32_t rank = 0; rank < place.size(); ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->ctaid = {first.x + rank % c.x, first.y + rank / c.x % c.y, first.z + rank / c.x / c.y};
    cta->smem.assign(launch.smem_bytes, 0xff);
    cta->shadow.resize((launch.smem_bytes >> kShadowShift) + 2);
    cta->live_threads = launch.threads;
    for (uint32_t i = 0; i < launch.warps; ++i) {
      auto w = std::make_unique<Warp>();
      w->cta = cta.get();
      w->index = static_cast<int>(i);
      uint32_t threads = std::min(32u, launch.threads - i * 32);
      w->place = cluster->next_place++;
      w->clock.raise(w->place, 1);
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

/// The clusters of a grid in the order in which they start. One of the preferred shape, or in its place those
/// of the regular shape.
std::vector<ClusterPlace> cluster_places(const LaunchConfig& config) {
  const Dim3& regular = config.cluster;
  const Dim3 large = config.preferred_cluster.value_or(regular);
  std::mt19937_64 random(config.schedule.seed);
  auto has_room = [&] {
    return config.schedule.policy == SchedulePolicy::eager ||
           (config.schedule.policy == SchedulePolicy::random && random() % 2 == 0);
  };
  std::vector<ClusterPlace> places;
  auto for_each = [](const Dim3& end, const auto& visit) {
    for (uint32_t z = 0; z < end.z; ++z)
      for (uint32_t y = 0; y < end.y; ++y)
        for (uint32_t x = 0; x < end.x; ++x) visit(Dim3{x, y, z});
  };
  const Dim3 inside{large.x / regular.x, large.y / regular.y, large.z / regular.z};
  for_each({config.grid.x / large.x, config.grid.y / large.y, config.grid.z / large.z}, [&](const Dim3& at) {
    if (large == regular || has_room()) {
      places.push_back({large, at});
      return;
    }
    for_each(inside, [&](const Dim3& in) {
      places.push_back({regular, {at.x * inside.x + in.x, at.y * inside.y + in.y, at.z * inside.z + in.z}});
    });
  });
  return places;
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
  if (const Dim3 p = c.preferred_cluster.value_or(c.cluster); !(p == c.cluster)) {
    if (zero(p) || uint64_t{p.x} * p.y * p.z > 16 || p.x % c.cluster.x || p.y % c.cluster.y ||
        p.z % c.cluster.z || c.grid.x % p.x || c.grid.y % p.y || c.grid.z % p.z)
      return fmt::format(
          "preferred cluster {}x{}x{}: not a multiple of cluster {}x{}x{} that divides the grid, of 16 CTAs "
          "at most",
          p.x, p.y, p.z, c.cluster.x, c.cluster.y, c.cluster.z);
  }
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

}  // namespace

Grid::Grid(Module& module, const LaunchConfig& config, GlobalMemory* memory) : program_(&module.program()) {
  launch_.program = program_;
  launch_.config = config;
  launch_.memory = memory;
  launch_.module_memory = &module.memory();
  launch_.function = program_->find_entry(config.kernel);
  if (!launch_.function) {
    refused_ = "no such kernel";
    return;
  }
  const Function& f = *launch_.function;
  Dim3& cluster = launch_.config.cluster;
  if (cluster.x == 0)
    cluster = f.required_cluster[0]
                  ? Dim3{f.required_cluster[0], f.required_cluster[1], f.required_cluster[2]}
                  : Dim3{1, 1, 1};
  cluster.y = std::max(1u, cluster.y);
  cluster.z = std::max(1u, cluster.z);
  launch_.params = config.params;
  launch_.check_races = config.check_races;
  uint32_t base = kSharedBase + f.static_smem_bytes;
  if (config.dynamic_smem_bytes) {
    uint32_t align = f.static_smem_bytes ? f.dynamic_smem_align : 1;
    base = (base + align - 1) & ~(align - 1);
  }
  uint64_t smem = uint64_t{base} + config.dynamic_smem_bytes;
  launch_.smem_bytes = static_cast<uint32_t>(std::min<uint64_t>(smem, 1u << 30));
  refused_ = check_launch(launch_);
  if (!refused_.empty()) return;
  launch_.threads = config.block.x * config.block.y * config.block.z;
  launch_.warps = (launch_.threads + 31) / 32;
  launch_.ctas_without_trigger = uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  std::vector<ClusterPlace> places = cluster_places(launch_.config);
  const Dim3 largest = config.preferred_cluster.value_or(cluster);
  launch_.most_ctas = largest.x * largest.y * largest.z;
  slots_ = std::min<uint64_t>(
      places.size(), std::max(1u, static_cast<uint32_t>(std::max(config.sm_count, 1)) / launch_.most_ctas));
  launch_.pending.resize(slots_);
  for (size_t i = 0; i < places.size(); ++i) launch_.pending[i % slots_].push_back(places[i]);
  launch_.print = [this](const std::string& text) {
    std::lock_guard lock(print_mutex_);
    printed_ += text;
  };
  done_.resize(slots_);
}

std::unique_ptr<Cluster> Grid::next_cluster(uint64_t slot) {
  ClusterPlace place = launch_.pending[slot].front();
  launch_.pending[slot].pop_front();
  return make_cluster(launch_, static_cast<uint32_t>(slot), place);
}

void Grid::retire(uint64_t slot, std::unique_ptr<Cluster> c) {
  if (c->failed) abort_ = true;
  if (program_->clusters_communicate)
    for (auto& cta : c->ctas)
      for (auto& w : cta->warps) launch_.kept_fences.push_back(std::move(w->global_fences));
  c->ctas.clear();
  // Counters of clusters are summed as they finish; only the first keeps its vector.
  if (!done_[slot].empty() && c->findings.empty()) {
    Cluster& sum = *done_[slot].front();
    for (size_t pc = 0; pc < sum.executed.size(); ++pc) sum.executed[pc] += c->executed[pc];
    sum.instructions += c->instructions;
    return;
  }
  done_[slot].push_back(std::move(c));
}

void Grid::run() {
  const LaunchConfig& config = launch_.config;
  unsigned threads = config.host_threads > 0 ? static_cast<unsigned>(config.host_threads)
                                             : std::max(1u, std::thread::hardware_concurrency());
  if (config.trace) threads = 1;
  if (!program_->clusters_communicate) {
    run_apart(threads);
    return;
  }
  while (take_turn()) {
  }
}

void Grid::run_apart(unsigned threads) {
  std::atomic<uint64_t> next{0};
  auto work = [&] {
    for (uint64_t slot; (slot = next++) < slots_ && !abort_;)
      while (!launch_.pending[slot].empty() && !abort_) {
        auto c = next_cluster(slot);
        while (c->step(kTurnInstructions) == Cluster::Status::progress && !abort_) {
        }
        retire(slot, std::move(c));
      }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < std::min<uint64_t>(threads, slots_); ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

bool Grid::take_turn() {
  if (abort_ || (started_ == slots_ && active_.empty())) return false;
  // A cluster that spins must be stopped before it looks like a livelock: the one it waits for may not have
  // started.
  uint64_t turn = std::clamp<uint64_t>(launch_.config.livelock_instructions / 4, 1,
                                       shares_device_ ? kSharedTurnInstructions : kTurnInstructions);
  bool fresh = started_ < slots_;
  uint64_t start_up_to = shares_device_ ? slots_ : std::min(started_ + 1, slots_);
  for (; started_ < start_up_to; ++started_) active_.emplace_back(started_, next_cluster(started_));
  uint64_t events = 0, events_after = 0;
  for (auto& [slot, c] : active_) events += c->events;
  blocked_ = !fresh;
  for (auto& [slot, c] : active_) {
    if (abort_) break;
    Cluster::Status status = c->step(turn);
    blocked_ &= status == Cluster::Status::blocked;
    if (status != Cluster::Status::finished) continue;
    bool failed = c->failed;
    retire(slot, std::move(c));
    if (!failed && !launch_.pending[slot].empty()) c = next_cluster(slot);
  }
  std::erase_if(active_, [](const auto& a) { return !a.second; });
  for (auto& [slot, c] : active_) events_after += c->events;
  // Somebody else's work is what a spinning cluster waits for.
  if (events_after != events || launch_.prerequisite_pending)
    for (auto& [slot, c] : active_) c->last_event_instructions = c->instructions;
  return !abort_ && (started_ < slots_ || !active_.empty());
}

LaunchResult Grid::result() {
  LaunchResult result;
  std::map<std::pair<int, int>, size_t> index;
  for (const auto& slot : done_)
    for (const auto& c : slot) merge_findings(result, *c, *program_, index);
  result.completed = !abort_;
  result.printed = printed_;
  return result;
}

}  // namespace gemmtune::emulator
