#include "tests/isolation/fault_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "tool/db_journal.h"

namespace gemmtune {
namespace {

// Places in the template.
constexpr std::string_view kEntry = "  const u32 ring = shared_address(shared_memory);\n";
constexpr std::string_view kKernel = "extern \"C\" __global__ void __launch_bounds__(kThreads, 1)\n";
constexpr std::string_view kRowCheck = "if (row >= size_m) continue;";
constexpr std::string_view kScaling = "Scaling{alpha, beta});";
constexpr std::string_view kProducerStage =
    "u32 barrier = full + 8 * at.index;\n      u32 stage = ring + at.index * kStageBytes;";
constexpr std::string_view kBarrierInit = "mbarrier_init(full + 8 * s, 1);";
constexpr std::string_view kRanks = "  const Ranks ranks{rank % knob::cluster_m, rank / knob::cluster_m};\n";

/// How many launches of this module have ended, counted by its warps: the one that draws the last ticket of a
/// launch counts it, and by then every warp has read the count. Atomics throughout, so that nobody calls it a
/// race; one a warp, since they queue at one address and a slow kernel is launched less often.
constexpr std::string_view kCountedKernel =
    "__device__ u32 fault_tickets, fault_launches;\n"
    "DEVICE u32 fault_launch() {\n"
    "  u32 seen = 0;\n"
    "  if (threadIdx.x % 32 == 0) {\n"
    "    seen = atomicAdd(&fault_launches, 0);\n"
    "    __threadfence();\n"
    "    u32 warps = gridDim.x * blockDim.x / 32;\n"
    "    if (atomicInc(&fault_tickets, warps - 1) == warps - 1) atomicAdd(&fault_launches, 1);\n"
    "  }\n"
    "  return __shfl_sync(~0u, seen, 0);\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(kThreads, 1)\n";

/// A counted kernel whose every thread knows the number of its launch, from 0.
constexpr std::string_view kCountedEntry =
    "  const u32 ring = shared_address(shared_memory);\n  const u32 launch = fault_launch();\n";

constexpr std::string_view kConsume = "DEVICE void consume(";
constexpr std::string_view kStorePair = "store_pair<problem::out_type, problem::beta>(d, c,";

std::vector<FaultKernel> make() {
  using enum Outcome;
  return {
      {"spins forever",
       {{kEntry,
         "  const u32 ring = shared_address(shared_memory);\n"
         "  if (size_m > 0) for (;;) asm volatile(\"\" ::: \"memory\");\n"}},
       {timed_out},
       {timed_out}},
      {"illegal global address",
       {{kEntry,
         "  const u32 ring = shared_address(shared_memory);\n"
         "  if (size_m > 0) *reinterpret_cast<volatile int*>(16) = 1;\n"}},
       {crashed},
       {crashed}},
      {"illegal shared address",
       {{kEntry,
         "  const u32 ring = shared_address(shared_memory);\n"
         "  if (size_m > 0) asm volatile(\"st.shared.u32 [%0], %1;\" ::\"r\"(ring + 0x100000), "
         "\"r\"(1));\n"}},
       {crashed},
       {crashed}},
      {"misaligned TMA",
       {{kProducerStage,
         "u32 barrier = full + 8 * at.index;\n      u32 stage = ring + at.index * kStageBytes + 8;"}},
       {crashed, timed_out},
       {crashed}},
      {"barrier that never completes",
       {{kBarrierInit, "mbarrier_init(full + 8 * s, 2);"}},
       {timed_out},
       {timed_out}},
      {"early exit of a cluster peer",
       {{kRanks,
         "  const Ranks ranks{rank % knob::cluster_m, rank / knob::cluster_m};\n  if (rank == 1) return;\n"}},
       {crashed, timed_out},
       {crashed, timed_out}},
      {"writes one element too far",
       {{kEntry,
         "  const u32 ring = shared_address(shared_memory);\n"
         "  if (threadIdx.x == 0 && blockIdx.x == 0) "
         "static_cast<u16*>(d)[static_cast<i64>(size_m) * size_n] = 1;\n"}},
       {wrong_result},
       {crashed}},
      {"skips the last tile",
       {{kRowCheck, "if (row >= size_m || index + 1 == tiles_m * tiles_n) continue;"}},
       {wrong_result},
       {wrong_result}},
      {"writes NaN",
       {{kScaling, "Scaling{__int_as_float(0x7fffffff), beta});"}},
       {wrong_result},
       {wrong_result}},
      {"wrong on the second launch",
       {{kKernel, kCountedKernel},
        {kEntry, kCountedEntry},
        {kScaling, "Scaling{launch == 1 ? 2 * alpha : alpha, beta});"}},
       {unstable},
       {unstable}},
      {"does nothing on the second launch",
       {{kKernel, kCountedKernel},
        {kEntry, "  const u32 ring = shared_address(shared_memory);\n  if (fault_launch() == 1) return;\n"}},
       {unstable},
       {unstable}},
      {"depends on a stale workspace",
       {{kKernel,
         "__device__ u32 fault_workspace[1 << 20];\n"
         "extern \"C\" __global__ void __launch_bounds__(kThreads, 1)\n"},
        {kScaling,
         "Scaling{atomicExch(&fault_workspace[(blockIdx.x * kThreads + threadIdx.x) % (1 << 20)], 1) == 0 ? "
         "alpha "
         ": 2 * alpha, beta});"}},
       {unstable, wrong_result},
       {unstable, wrong_result}},
      {"accumulates into its output",
       {{kConsume,
         "DEVICE bool fault_accumulate(float& acc, const void* d, i64 row_start, int column, int n) {\n"
         "  if (column >= n) return true;\n"
         "  float old = load_element<problem::out_type>(d, row_start + column);\n"
         "  if (old == old) acc += old;  // not onto the NaNs of the first launch\n"
         "  return true;\n"
         "}\n"
         "DEVICE void consume("},
        {kStorePair,
         "if (fault_accumulate(acc[block][4 * i + 2 * half], d, row_start, column0 + 8 * i, size_n)) "
         "store_pair<problem::out_type, problem::beta>(d, c,"}},
       {unstable},
       {unstable}},
      {"fast but does nothing",
       {{kEntry, "  const u32 ring = shared_address(shared_memory);\n  if (size_m > 0) return;\n"}},
       {wrong_result},
       {wrong_result}},
      // Validation takes about 50 launches, three samples hundreds.
      {"wrong after many launches",
       {{kKernel, kCountedKernel},
        {kEntry, kCountedEntry},
        {kScaling, "Scaling{launch >= 100 ? 2 * alpha : alpha, beta});"}},
       {unstable},
       {ok}},
  };
}

std::string replaced_once(std::string text, std::string_view what, std::string_view with) {
  size_t at = text.find(what);
  if (at == std::string::npos || text.find(what, at + 1) != std::string::npos)
    throw std::logic_error(fmt::format("not exactly once in the template: {}", what));
  return text.replace(at, what.size(), with);
}

std::vector<StoredTrial> trials_of(const std::string& path) {
  return Store(path, OpenMode::read_only).trials({});
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')).substr(0, 150); }

/// Shapes, fills and verdicts, without the errors that a fault has.
std::string validation_text(const Trial& trial) {
  std::string text(name(trial.validation.by));
  for (const ValidationCase& c : trial.validation.cases)
    text += fmt::format(" {} {} {} {} {:.9g}", name(c.fill), to_string(c.shape), c.elements, c.passed(),
                        c.max_error_over_bound);
  return text;
}

}  // namespace

const std::vector<FaultKernel>& fault_kernels() {
  static const std::vector<FaultKernel> kernels = make();
  return kernels;
}

std::string broken_source(std::string source, const FaultKernel& fault) {
  for (auto [what, with] : fault.changes) source = replaced_once(std::move(source), what, with);
  return source;
}

void SabotagedCompiler::submit(CompileRequest request) {
  if (std::ranges::find(keys_, request.key) == keys_.end()) keys_.push_back(request.key);
  if (const FaultKernel* fault = fault_of(request.key))
    request.source = broken_source(request.source, *fault);
  real_.submit(std::move(request));
}

CompileResult SabotagedCompiler::take(const std::string& key) {
  while (real_.poll(std::chrono::milliseconds(1000))) {
  }
  return real_.take(key);
}

const FaultKernel* SabotagedCompiler::fault_of(const std::string& key) const {
  auto found = std::ranges::find(keys_, key);
  size_t index = static_cast<size_t>(found - keys_.begin());
  if (found == keys_.end() || index == 0 || index > fault_kernels().size()) return nullptr;
  return &fault_kernels()[index - 1];
}

SweepOptions fault_sweep_options() {
  SweepOptions o;
  o.arch = &find_arch("sm_90a");
  o.family = &family_for(*o.arch);
  o.shapes = {{{2048, 2048, 512}, "", 1}};
  for (const char* restriction :
       {"stages=2,3,4,5,6,7", "tile_k=64", "tile_m=128", "tile_n=16,32,64,96", "swizzle=128B", "consumers=2",
        "cluster_m=2", "cluster_n=1", "persistent=no", "raster=m", "raster_group=8", "prefetch=0",
        "l2_a=normal", "l2_b=normal", "pdl=no"})
    add_restriction(*o.family, restriction, o.restrictions);
  o.strategy = &find_strategy("exhaustive");
  o.trials = 1000;
  return o;
}

SweepSummary run_fault_sweep(const std::string& path, Compiler& compiler, Executor& executor) {
  Store store(path);
  DbJournal journal(store, executor.device(), store.start_sweep("fault sweep", 1, "test"));
  SweepObserver observer;
  std::atomic<bool> stop{false};
  return run_sweep(fault_sweep_options(), compiler, &executor, journal, observer, stop);
}

void expect_contained(const std::string& healthy_path, const std::string& path,
                      const SabotagedCompiler& saboteur, bool on_gpu) {
  std::map<std::string, Trial> healthy;
  for (const StoredTrial& stored : trials_of(healthy_path)) healthy[stored.trial.config] = stored.trial;
  std::vector<StoredTrial> trials = trials_of(path);
  ASSERT_EQ(trials.size(), healthy.size());

  std::vector<double> walls;
  for (const StoredTrial& stored : trials)
    if (!saboteur.fault_of(stored.trial.kernel_key)) walls.push_back(stored.trial.wall_ms);
  std::ranges::sort(walls);
  ASSERT_FALSE(walls.empty());
  double usual_ms = walls[walls.size() / 2];

  Store store(path, OpenMode::read_only);
  std::optional<Winner> winner =
      store.winner(trials.front().trial.problem, trials.front().device_id, Timing());
  if (on_gpu) {
    ASSERT_TRUE(winner.has_value());
  }
  size_t faults = 0, survivors = 0;
  fmt::print("  {:<35} {:<14} {:>8}  message\n", "kernel", "outcome", "seconds");
  for (size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i].trial;
    const FaultKernel* fault = saboteur.fault_of(trial.kernel_key);
    if (fault == nullptr) {
      const Trial& before = healthy.at(trial.config);
      EXPECT_EQ(trial.outcome, before.outcome) << trial.config << ": " << trial.message;
      EXPECT_EQ(validation_text(trial), validation_text(before)) << trial.config;
      ++survivors;
      continue;
    }
    ++faults;
    const std::vector<Outcome>& allowed = on_gpu ? fault->gpu : fault->emulator;
    EXPECT_NE(std::ranges::find(allowed, trial.outcome), allowed.end())
        << fault->name << ": " << name(trial.outcome) << ": " << trial.message;
    if (winner) {
      EXPECT_EQ(std::ranges::find(winner->ties, trials[i].id, &Tie::trial_id), winner->ties.end())
          << fault->name;
      EXPECT_NE(winner->trial_id, trials[i].id) << fault->name;
    }
    // The next trial pays for the worker's restart, the canary and the operands.
    double lost_ms = trial.wall_ms;
    if (i + 1 < trials.size() && !saboteur.fault_of(trials[i + 1].trial.kernel_key))
      lost_ms += std::max(0.0, trials[i + 1].trial.wall_ms - usual_ms);
    fmt::print("  {:<35} {:<14} {:>8.2f}  {}\n", fault->name, name(trial.outcome), lost_ms / 1000,
               first_line(trial.message));
  }
  EXPECT_EQ(faults, fault_kernels().size());
  EXPECT_GE(survivors, 8u);
  fmt::print("  {:<35} {:<14} {:>8.2f}  {} other trials, each with outcome and evidence as without faults\n",
             "none (healthy)", "ok", usual_ms / 1000, survivors);
}

}  // namespace gemmtune
