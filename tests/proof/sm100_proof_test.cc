// The proof of sm100_gemm: a sample of its legal space in which every legal combination of two knob values,
// architectures, problem classes, fills, scalings and schedules occurs (GEMMTUNE_COVERING=3: of three). Every
// row is compiled, checked statically, and run once on a ragged problem on the emulator; results are compared
// bit for bit. The schedules are a factor like the knobs: a row has one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>

#include "kernel_templates/render.h"
#include "search/covering.h"
#include "tests/all_cores.h"
#include "tests/proof/cubin.h"
#include "tests/proof/proof.h"

namespace gemmtune {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// scripts/prove.sh, which says how strong the sample is to be.
bool full_run() { return std::getenv("GEMMTUNE_COVERING") != nullptr; }

int strength() {
  const char* text = std::getenv("GEMMTUNE_COVERING");
  return text ? std::clamp(std::atoi(text), 2, 4) : 2;
}

using emulator::SchedulePolicy;
constexpr emulator::Schedule kSchedules[] = {{SchedulePolicy::eager, 0},
                                             {SchedulePolicy::lazy, 0},
                                             {SchedulePolicy::random, 1},
                                             {SchedulePolicy::random, 2},
                                             {SchedulePolicy::random, 3}};
// Powers of two, so that integer fills stay exact. beta counts where the class has it.
constexpr std::pair<float, float> kScalings[] = {{1.0f, 1.0f}, {-0.5f, 2.0f}, {2.0f, -0.5f}};
constexpr Fill kFills[] = {Fill::sharp, Fill::rounding};

constexpr std::string_view kArchs[] = {"sm_100a", "sm_103a"};

enum Factor { kIn, kOut, kAMajor, kBMajor, kBeta, kSchedule, kScaling, kFill, kArch };
const std::vector<ExtraFactor> kFactors = {{"in", 2},      {"out", 3},  {"a_major", 2},
                                           {"b_major", 2}, {"beta", 2}, {"schedule", 5},
                                           {"scaling", 3}, {"fill", 2}, {"arch", 2}};

ProblemClass class_of(const std::vector<int>& extra) {
  auto at = [&](Factor factor) { return extra[static_cast<size_t>(factor)]; };
  return {at(kIn) ? DType::f16 : DType::bf16, static_cast<DType>(at(kOut)),
          at(kAMajor) ? Major::mn : Major::k, at(kBMajor) ? Major::mn : Major::k, at(kBeta) != 0};
}

/// The factors that the family's rules look at each have a space of their own.
CoveringSample sample_of(const KernelFamily& family, int strength) {
  std::vector<Space> spaces;
  auto index = [](const std::vector<int>& extra) {
    return static_cast<size_t>(extra[kOut] + 3 * extra[kAMajor] + 6 * extra[kBMajor] + 12 * extra[kArch]);
  };
  for (int i = 0; i < 24; ++i)
    spaces.emplace_back(family, find_arch(kArchs[i / 12]),
                        class_of({0, i % 3, i / 3 % 2, i / 6 % 2, 0, 0, 0, 0, i / 12}), std::nullopt);
  return covering_sample([&](const std::vector<int>& extra) -> const Space& { return spaces[index(extra)]; },
                         kFactors, strength, 20260801);
}

struct Row {
  Variant variant;
  Trip trip;
  std::string static_fault, run_fault;
  int registers = 0;
  double compile_s = 0, run_s = 0;

  std::string text() const {
    return fmt::format("{} {} {} {} fill {} alpha {} beta {} schedule {} {} on {} SMs", variant.arch->name,
                       to_string(variant.cls), brief_text(variant.family->knobs(), variant.config),
                       to_string(trip.shape), name(trip.fill), trip.alpha, trip.beta,
                       emulator::name(trip.schedule.policy), trip.schedule.seed, trip.sm_count);
  }
};

void prove(const Nvrtc& nvrtc, Row& row) {
  auto start = Clock::now();
  CompileResult compiled = nvrtc.compile({"", render(row.variant), std::string(row.variant.arch->name)});
  row.registers = compiled.evidence.registers;
  row.compile_s = seconds_since(start);
  row.static_fault = static_fault(row.variant, compiled);
  if (!compiled.ok) return;
  start = Clock::now();
  row.run_fault = run_fault(row.variant, compiled.ptx, row.trip);
  row.run_s = seconds_since(start);
}

/// In this process: NVRTC is thread-safe.
void prove_all(std::vector<Row>& rows) {
  Nvrtc nvrtc;
  std::mutex printing;
  on_all_cores(rows.size(), [&](size_t i) {
    prove(nvrtc, rows[i]);
    std::lock_guard lock(printing);
    if (!rows[i].static_fault.empty())
      fmt::print("row {} static: {}: {}\n", i, rows[i].text(), rows[i].static_fault);
    if (!rows[i].run_fault.empty()) fmt::print("row {} run: {}: {}\n", i, rows[i].text(), rows[i].run_fault);
    if (i % 500 == 499) fmt::print("{} of {} rows\n", i + 1, rows.size());
    std::fflush(stdout);
  });
}

/// Prints the summary and fails on every fault.
void judge(std::vector<Row>& rows, Clock::time_point start, const std::string& what) {
  prove_all(rows);
  size_t static_faults = 0, run_faults = 0;
  int registers = 0;
  double compile_s = 0, run_s = 0, slowest = 0;
  for (const Row& row : rows) {
    static_faults += !row.static_fault.empty();
    run_faults += !row.run_fault.empty();
    registers = std::max(registers, row.registers);
    compile_s += row.compile_s;
    run_s += row.run_s;
    slowest = std::max(slowest, row.run_s);
    EXPECT_EQ(row.static_fault, "") << row.text();
    EXPECT_EQ(row.run_fault, "") << row.text();
  }
  fmt::print(
      "{}: {} rows; static: {} as designed, {} not, at most {} registers; functional: {} right, {} not\n"
      "{:.0f} s; of one core: {:.0f} s compiling, {:.0f} s emulating, slowest row {:.1f} s\n",
      what, rows.size(), rows.size() - static_faults, static_faults, registers, rows.size() - run_faults,
      run_faults, seconds_since(start), compile_s, run_s, slowest);
}

const KernelFamily& family() { return family_for(find_arch("sm_100a")); }

std::vector<Row> rows_of(int strength) {
  auto start = Clock::now();
  CoveringSample sample = sample_of(family(), strength);
  fmt::print("{}-way sample: {} rows cover {} combinations ({} are impossible), drawn in {:.1f} s\n",
             strength, sample.rows.size(), sample.combinations, sample.impossible, seconds_since(start));
  std::vector<Row> rows;
  for (const CoveringRow& covering : sample.rows) {
    Row row;
    row.variant = {&family(), &find_arch(kArchs[covering.extra[kArch]]), class_of(covering.extra),
                   covering.config};
    row.trip = ragged_trip(row.variant, rows.size());
    row.trip.schedule = kSchedules[covering.extra[kSchedule]];
    row.trip.fill = kFills[covering.extra[kFill]];
    std::tie(row.trip.alpha, row.trip.beta) = kScalings[covering.extra[kScaling]];
    if (!row.variant.cls.beta) row.trip.beta = 0;
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(Sm100Proof, CoveringSample) {
  auto start = Clock::now();
  std::vector<Row> rows = rows_of(strength());
  judge(rows, start, fmt::format("{}-way sample", strength()));
}

/// Drawn uniformly: a covering sample takes longer than what is done with it.
std::vector<Row> random_rows(size_t count) {
  std::mt19937_64 random(20260801);
  std::vector<Row> rows;
  while (rows.size() < count) {
    std::vector<int> extra;
    for (const ExtraFactor& factor : kFactors)
      extra.push_back(static_cast<int>(random() % static_cast<uint64_t>(factor.count)));
    Row row;
    row.variant = {&family(), &find_arch(kArchs[extra[kArch]]), class_of(extra), {}};
    auto config = Space(family(), *row.variant.arch, row.variant.cls, std::nullopt).sample(random);
    if (!config) continue;
    row.variant.config = *config;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The two CTAs of a pair agree on an allocation of tensor memory through a barrier of the system's.
int allocation_waits(const Variant& v) { return v.family->value(v.config, "cta_group") == 2 ? 6 : 0; }

/// What ptxas (13.0) makes of the design. It neither unrolls nor merges the template's rolled loops, so most
/// instructions are what they are in PTX.
InstructionCounts designed_sass(const Variant& v) {
  auto knob = [&](const char* name) { return v.family->value(v.config, name); };
  InstructionCounts counts = v.family->expected_counts(v.config, v.cls);
  // A load of 16 lanes for each half of the warp (16x32bx2) is two.
  if (knob("tile_m") == 64 && knob("cta_group") == 1) counts.tmem_load *= 2;
  // An allocation is a first try and a loop that goes on trying.
  counts.tmem_alloc *= 2;
  return counts;
}

/// The SASS has what the design says.
TEST(Sm100Proof, MachineInstructions) {
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm: set GEMMTUNE_NVDISASM or CUDA_HOME";
  auto start = Clock::now();
  std::vector<Row> rows = full_run() ? rows_of(2) : random_rows(48);
  Nvrtc nvrtc;
  on_all_cores(rows.size(), [&](size_t i) {
    const Variant& v = rows[i].variant;
    CompileResult compiled = nvrtc.compile({"", render(v), std::string(v.arch->name)});
    rows[i].static_fault = static_fault(v, compiled);
    if (rows[i].static_fault.empty())
      rows[i].static_fault = sass_fault(designed_sass(v), allocation_waits(v), count_sass(compiled.cubin));
  });
  for (const Row& row : rows) EXPECT_EQ(row.static_fault, "") << row.text();
  fmt::print("machine instructions: {} rows in {:.0f} s with {}\n", rows.size(), seconds_since(start),
             nvdisasm_path());
}

/// Depths that never recycle a stage of a deep ring, recycle some, and go round many times.
TEST(Sm100Proof, Depths) {
  if (!full_run()) GTEST_SKIP() << "scripts/prove.sh runs this";
  auto start = Clock::now();
  std::vector<Row> rows = rows_of(2), deep;
  for (size_t i = 0; i < rows.size(); i += 8)
    for (int64_t k : {64, 192, 1024, 8192}) {
      // Two tiles, the second partial.
      Row row = rows[i];
      const TileShape t = family().tile(row.variant.config, row.variant.cls);
      int64_t m = int64_t{t.tile_m} * t.cluster_m, n = int64_t{t.tile_n} * t.cluster_n;
      row.trip.shape = m < n ? Shape{m + 8, n, k} : Shape{m, n + 8, k};
      deep.push_back(std::move(row));
    }
  judge(deep, start, "K of 64, 192, 1024, 8192");
}

/// The ladder's last step at its own size.
TEST(Sm100Proof, FourThousandCubed) {
  if (!full_run()) GTEST_SKIP() << "scripts/prove.sh runs this";
  auto start = Clock::now();
  std::vector<Row> rows(1);
  rows[0].variant = {&family(), &find_arch("sm_100a"), ProblemClass{DType::f16, DType::f16},
                     parse_config(family().knobs(),
                                  "stages=6,tile_n=256,cta_group=2,cluster_m=2,persistent=static,acc_slots=2,"
                                  "epilogue=tma_store")};
  rows[0].trip.shape = {4096, 4096, 4096};
  rows[0].trip.sm_count = 148;
  rows[0].trip.schedule = {SchedulePolicy::random, 1};
  rows[0].trip.host_threads = 0;
  judge(rows, start, "4096 x 4096 x 4096");
}

}  // namespace
}  // namespace gemmtune
