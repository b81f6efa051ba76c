// Host side of sm100_gemm.cu: knobs, constraints with their reasons, launch plan, expected instruction
// counts.
#include "kernel_templates/sm100_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernel_templates/tma_operand.h"

namespace gemmtune {
namespace {

constexpr int kTileM = 128;
constexpr int kThreads = 192;
constexpr int kTmemColumns = 512;

/// A config with the names of the kernel's knobs.
struct Knobs {
  int stages, tile_k, swizzle_a, swizzle_b, tile_n, cta_group, cluster_m, cluster_n, persistent, acc_slots,
      raster, raster_group;

  explicit Knobs(const Config& c)
      : stages(c.values[0]),
        tile_k(c.values[1]),
        swizzle_a(c.values[2]),
        swizzle_b(c.values[3]),
        tile_n(c.values[4]),
        cta_group(c.values[5]),
        cluster_m(c.values[6]),
        cluster_n(c.values[7]),
        persistent(c.values[8]),
        acc_slots(c.values[9]),
        raster(c.values[10]),
        raster_group(c.values[11]) {}

  int cluster_size() const { return cluster_m * cluster_n; }
  int slot_columns() const { return (tile_n + 31) / 32 * 32; }
  int barrier_bytes() const { return 16 * stages + 16 * acc_slots + 16; }
  OperandTileSpec tile_a(const ProblemClass& cls) const {
    return {Operand::a, kTileM, tile_k, cls.a_major, swizzle_a, cluster_n};
  }
  OperandTileSpec tile_b(const ProblemClass& cls) const {
    return {Operand::b,  tile_n / cta_group, tile_k,
            cls.b_major, swizzle_b,          std::max(1, cluster_m / cta_group)};
  }
  int stage_bytes(const ProblemClass& cls) const {
    return tile_a(cls).stride_bytes() + tile_b(cls).stride_bytes();
  }
};

std::vector<int> steps(int first, int last, int step) {
  std::vector<int> values;
  for (int value = first; value <= last; value += step) values.push_back(value);
  return values;
}

class Sm100Gemm final : public KernelFamily {
 public:
  Sm100Gemm() {
    knobs_ = {
        stages_knob(steps(1, 12, 1), 4),
        {"tile_k", {16, 32, 64, 128}, 64, "depth of one stage, elements of K", {}, true},
        swizzle_knob("a"),
        swizzle_knob("b"),
        {"tile_n",
         steps(16, 256, 16),
         128,
         "columns of an output tile (of the pair's with cta_group 2)",
         {},
         true},
        {"cta_group", {1, 2}, 1, "CTAs that one MMA spans: 1 = 128 rows, 2 = 256 rows over a pair", {}, true},
        cluster_knob("m"),
        cluster_knob("n"),
        {"persistent", {0, 1}, 0, "one tile a CTA, or CTAs that walk over tiles", {"no", "static"}, true},
        {"acc_slots", {1, 2}, 1, "accumulators in tensor memory: 2 overlaps epilogue and MMA", {}, true},
        raster_knob(),
        raster_group_knob(),
    };
    constraints_ = {
        {"tile_a",
         {"tile_k", "swizzle_a", "cluster_n"},
         [](const Config& c, const ConstraintScope& s) { return tile_violation(Knobs(c).tile_a(s.cls)); }},
        {"pair",
         {"cta_group", "cluster_m"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.cta_group == 1 || k.cluster_m % 2 == 0) return std::string();
           return fmt::format("cta_group 2 pairs neighbours along M: cluster_m = {} is odd", k.cluster_m);
         }},
        {"mma_n",
         {"tile_n", "cta_group"},
         [](const Config& c, const ConstraintScope&) {
           // CUTLASS asserts 16 for operands in shared memory and 32 for A in tensor memory; 32 is safe for
           // both (ptx-facts 2.5).
           Knobs k(c);
           if (k.cta_group == 1 || k.tile_n % 32 == 0) return std::string();
           return fmt::format("tile_n = {}: an MMA over a pair takes N in steps of 32", k.tile_n);
         }},
        {"tile_b",
         {"tile_k", "swizzle_b", "tile_n", "cta_group", "cluster_m"},
         [](const Config& c, const ConstraintScope& s) { return tile_violation(Knobs(c).tile_b(s.cls)); }},
        {"cluster",
         {"cluster_m", "cluster_n"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           if (k.cluster_size() <= s.arch.max_cluster_size) return std::string();
           return fmt::format("cluster {} x {} = {} CTAs > {}, the portable maximum", k.cluster_m,
                              k.cluster_n, k.cluster_size(), s.arch.max_cluster_size);
         }},
        {"smem",
         {"stages", "tile_k", "tile_n", "cta_group", "acc_slots"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           return smem_violation(k.stages, k.stage_bytes(s.cls), k.barrier_bytes(), s.arch);
         }},
        {"tmem",
         {"tile_n", "acc_slots"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.acc_slots * k.slot_columns() <= kTmemColumns) return std::string();
           return fmt::format("{} accumulators x {} columns = {} > {} columns of tensor memory", k.acc_slots,
                              k.slot_columns(), k.acc_slots * k.slot_columns(), kTmemColumns);
         }},
        {"acc_slots",
         {"persistent", "acc_slots"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.acc_slots == 1 || k.persistent) return std::string();
           return std::string(
               "acc_slots = 2 without persistent: a CTA has one tile, the second accumulator is idle");
         }},
        {"size",
         {"tile_n", "cluster_m", "cluster_n"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           if (!s.shape) return std::string();
           return size_violation(*s.shape, int64_t{kTileM} * k.cluster_m, int64_t{k.tile_n} * k.cluster_n,
                                 k.cluster_size());
         }},
        {"alignment",
         {},
         [](const Config&, const ConstraintScope& s) {
           return s.shape ? alignment_violation(s.cls, *s.shape) : std::string();
         }},
    };
  }

  std::string_view name() const override { return "sm100_gemm"; }
  std::string_view entry() const override { return "sm100_gemm"; }
  std::string_view template_file() const override { return "sm100_gemm.cu"; }
  bool supports(const ArchSpec& arch) const override { return arch.has_tcgen05; }

  std::string preamble(const Config& config, const ProblemClass&, const ArchSpec&) const override {
    return fmt::format(
        "namespace knob {{\nconstexpr int tmem_columns = {};  // power of two that holds the accumulators\n"
        "}}  // namespace knob\n\n",
        tmem_columns(config));
  }

  LaunchPlan plan(const Config& config, const ProblemClass& cls, const ArchSpec&, const Shape& s,
                  const LaunchDevice& device, float alpha, float beta) const override {
    Knobs k(config);
    int64_t clusters =
        tiles(s.m, int64_t{kTileM} * k.cluster_m) * tiles(s.n, int64_t{k.tile_n} * k.cluster_n);
    LaunchPlan plan;
    plan.grid = {grid_ctas(clusters, k.cluster_size(), k.persistent, device)};
    plan.block = {kThreads};
    plan.cluster = {static_cast<uint32_t>(k.cluster_size())};
    plan.dynamic_smem_bytes = k.stages * k.stage_bytes(cls) + k.barrier_bytes();
    plan.args = gemm_args(k.tile_a(cls), k.tile_b(cls), cls.in, s, alpha, beta, k.raster_group, k.raster);
    return plan;
  }

  TileShape tile(const Config& config, const ProblemClass& cls) const override {
    Knobs k(config);
    return {kTileM,
            k.tile_n,
            k.tile_k,
            k.cluster_m,
            k.cluster_n,
            k.stages,
            k.stage_bytes(cls),
            std::min(k.swizzle_a, k.swizzle_b),
            k.persistent != 0,
            kThreads,
            std::clamp(std::min(kTmemColumns / tmem_columns(config),
                                233472 / (k.stages * k.stage_bytes(cls) + 1024)),
                       1, 8)};
  }

  int tmem_columns(const Config& config) const override {
    Knobs k(config);
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(k.acc_slots * k.slot_columns())));
  }

  InstructionCounts expected_counts(const Config& config, const ProblemClass& cls) const override {
    Knobs k(config);
    InstructionCounts counts;
    counts.mma = k.tile_k / 16;
    counts.tma_load = k.tile_a(cls).copies() + k.tile_b(cls).copies();
    counts.commit = 2;  // stage free, accumulator full
    counts.mbarrier_wait =
        5;  // producer: empty, tail; MMA: accumulator empty, full; epilogue: accumulator full
    counts.tmem_load = 1;
    counts.tmem_alloc = 1;
    return counts;
  }
};

}  // namespace

const KernelFamily& sm100_gemm_family() {
  static const Sm100Gemm family;
  return family;
}

}  // namespace gemmtune
