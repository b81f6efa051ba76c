#include "tests/proof/proof.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/emulated_gemm.h"
#include "search/static_check.h"
#include "tests/proof/cubin.h"

namespace gemmtune {
namespace {

std::string counts_text(const InstructionCounts& c) {
  return fmt::format("mma {} tma load {} store {} commit {} wait {} tmem load {} alloc {}", c.mma, c.tma_load,
                     c.tma_store, c.commit, c.mbarrier_wait, c.tmem_load, c.tmem_alloc);
}

}  // namespace

std::string static_fault(const Variant& v, const CompileResult& compiled) {
  if (!compiled.ok) return "does not compile: " + compiled.log;
  StaticEvidence e = planned_evidence(v, compiled.evidence);
  std::string fault = static_violation(v, e);
  if (!fault.empty()) return fault;
  if (std::string target = cubin_target(compiled.cubin); target != v.arch->name)
    return fmt::format("the cubin is for {}, asked for {}", target.empty() ? "nothing" : target,
                       v.arch->name);
  InstructionCounts want = v.family->expected_counts(v.config, v.cls);
  if (e.counts == want) return "";
  return fmt::format("counts {}, designed {}", counts_text(e.counts), counts_text(want));
}

std::string run_fault(const Variant& v, const std::string& ptx, const Trip& trip) {
  try {
    emulator::Module module(ptx);
    EmulatedGemm gemm({v.cls, trip.shape}, trip.fill, trip.alpha, trip.beta);
    emulator::LaunchConfig how;
    how.schedule = trip.schedule;
    how.host_threads = trip.host_threads;
    how.instruction_limit = trip.instruction_limit;
    emulator::LaunchResult ran = gemm.launch(module, v, trip.sm_count, how);
    if (!ran.clean()) return ran.diagnoses.empty() ? "did not complete" : ran.text();
    // Warnings too: the project's own kernels have none.
    if (!ran.diagnoses.empty()) return ran.text();
    ValidationCase result = gemm.compare(gemm.output());
    if (result.mismatches == 0) return "";
    return fmt::format("{} of {} elements wrong, first {}", result.mismatches, result.elements,
                       result.first_mismatch);
  } catch (const emulator::PtxError& error) {
    return fmt::format("the emulator does not understand the PTX: {}", error.what());
  }
}

Trip ragged_trip(const Variant& v, uint64_t pick) {
  const TileShape t = v.family->tile(v.config, v.cls);
  const int cluster = t.cluster_m * t.cluster_n;
  const int64_t rows = int64_t{t.tile_m} * t.cluster_m, columns = int64_t{t.tile_n} * t.cluster_n;
  // 9 tiles on 4 clusters: whole rounds and a rest. Large ones: 3 tiles on 2 clusters, along one dimension.
  int tiles_m = 3, tiles_n = 3, clusters = 4;
  if (rows * columns > 32768) {
    bool along_m = rows <= columns;
    tiles_m = along_m ? 3 : 1, tiles_n = along_m ? 1 : 3, clusters = 2;
  }
  Trip trip;
  trip.sm_count = clusters * cluster;
  const int64_t k_tiles[] = {t.stages + 1, 2 * t.stages + 1, t.split_k + t.split_k / 2 + 1,
                             std::max(1, t.split_k / 2), 1};
  int64_t k = k_tiles[pick % std::size(k_tiles)];
  // A cap on the work of one row; not on what small tiles are for.
  while (k > 3 && tiles_m * tiles_n * rows * columns * k * t.tile_k > 150'000'000) k = (k + 1) / 2;
  // The last tile along each dimension is partly outside. Contiguous dimensions are multiples of 16 bytes.
  trip.shape = {(tiles_m - 1) * rows + (rows + 2) / 3, (tiles_n - 1) * columns + (columns + 2) / 3,
                (k - 1) * t.tile_k + t.tile_k / 2};
  auto even = [](int64_t& size, int64_t multiple) { size = std::max(multiple, size / multiple * multiple); };
  trip.shape.m += 1, trip.shape.n += 1, trip.shape.k += 1;
  if (v.cls.a_major == Major::mn) even(trip.shape.m, 8);
  if (v.cls.b_major == Major::mn) even(trip.shape.n, 8);
  if (v.cls.a_major == Major::k || v.cls.b_major == Major::k) even(trip.shape.k, 8);
  even(trip.shape.n, t.n_multiple);
  return trip;
}

}  // namespace gemmtune
