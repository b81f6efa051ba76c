// Host side of sm100_gemm.cu: knobs, constraints with their reasons, launch plan, expected instruction
// counts.
#include "kernel_templates/sm100_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernel_templates/launch_knobs.h"
#include "kernel_templates/tma_operand.h"

namespace gemmtune {
namespace {

constexpr int kTmemColumns = 512;
constexpr int64_t kMaxWorkspaceBytes = int64_t{128} << 20;  // as much as cuBLASLt is given beside us

enum Persistent { kOneTile, kStatic, kClc };

/// A config with the names of the kernel's knobs.
struct Knobs {
  int stages, tile_k, swizzle_a, swizzle_b, swap_ab, tile_m, tile_n, cta_group, cluster_m, cluster_n,
      preferred_m, persistent, acc_slots, epilogue, epilogue_warps, split_k, stream_k, loader,
      warp_specialized, mma_wait;

  explicit Knobs(const Config& c) {
    size_t i = 0;
    // In the order of the family's declaration.
    for (int* field :
         {&stages,         &tile_k,    &swizzle_a, &swizzle_b,   &swap_ab,          &tile_m,    &tile_n,
          &cta_group,      &cluster_m, &cluster_n, &preferred_m, &persistent,       &acc_slots, &epilogue,
          &epilogue_warps, &split_k,   &stream_k,  &loader,      &warp_specialized, &mma_wait})
      *field = c.values[i++];
  }

  int cluster_size() const { return cluster_m * cluster_n; }
  /// Of the CTAs that take one cluster tile: sm100_gemm.cu, kTeamM.
  int team_m() const { return cluster_m * preferred_m; }
  int team_size() const { return team_m() * cluster_n; }
  int threads() const { return 32 * (epilogue_warps + (warp_specialized ? 2 + (persistent == kClc) : 0)); }
  bool reduces() const { return split_k > 1 || stream_k; }
  /// Of the MMA's D, M x N of the problem or N x M.
  int64_t rows(const Shape& s) const { return swap_ab ? s.n : s.m; }
  int64_t columns(const Shape& s) const { return swap_ab ? s.m : s.n; }

  // Where the accumulator lies: the constants of the same names in sm100_gemm.cu.
  int lane_columns() const { return tile_m == 64 && cta_group == 2 ? tile_n / 2 : tile_n; }
  int slot_columns() const { return (lane_columns() + 31) / 32 * 32; }
  int warp_columns() const { return lane_columns() / (epilogue_warps / 4); }
  int chunk() const { return warp_columns() % 32 == 0 ? 32 : 16; }
  int rows_per_warp() const { return tile_m == 64 && cta_group == 1 ? 16 : 32; }
  int box_span_bytes(const ProblemClass& cls) const { return chunk() * size_bytes(cls.out); }

  int box_bytes(const ProblemClass& cls) const {
    return epilogue ? 2 * epilogue_warps * rows_per_warp() * box_span_bytes(cls) : 0;
  }
  /// full, empty; acc_full, acc_empty; two answers with their barriers; two words.
  int barrier_bytes() const { return 16 * stages + 16 * acc_slots + 64 + 8; }
  int fixed_bytes(const ProblemClass& cls) const { return box_bytes(cls) + barrier_bytes(); }

  OperandTileSpec tile_a(const ProblemClass& cls) const {
    return {swap_ab ? Operand::b : Operand::a,   tile_m,    tile_k,
            swap_ab ? cls.b_major : cls.a_major, swizzle_a, cluster_n};
  }
  OperandTileSpec tile_b(const ProblemClass& cls) const {
    return {swap_ab ? Operand::a : Operand::b,   tile_n / cta_group, tile_k,
            swap_ab ? cls.a_major : cls.b_major, swizzle_b,          std::max(1, team_m() / cta_group)};
  }
  int stage_bytes(const ProblemClass& cls) const {
    return tile_a(cls).stride_bytes() + tile_b(cls).stride_bytes();
  }

  int64_t output_tiles(const Shape& s) const {  // in teams
    return tiles(rows(s), int64_t{tile_m} * team_m()) * tiles(columns(s), int64_t{tile_n} * cluster_n);
  }
  int64_t parts(const Shape& s) const { return std::min<int64_t>(split_k, tiles(s.k, tile_k)); }
  int64_t counter_bytes(const Shape& s) const {
    return (4 * output_tiles(s) * team_size() + 1023) / 1024 * 1024;
  }
  int64_t workspace_bytes(const Shape& s, int64_t teams_of_grid) const {
    if (!reduces()) return 0;
    int64_t slots = stream_k ? 2 * teams_of_grid : output_tiles(s) * parts(s);
    return counter_bytes(s) + slots * team_size() * tile_m * tile_n * 4;
  }
};

std::string serial_violation(const Knobs& k, bool fits, std::string_view why) {
  return k.warp_specialized || fits ? "" : fmt::format("warp_specialized = no: {}", why);
}

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
        {"swap_ab", {0, 1}, 0, "N along the MMA's rows: for M smaller than a tile", {"no", "yes"}, true},
        {"tile_m", {64, 128}, 128, "rows of an output tile in one CTA", {}, true},
        {"tile_n",
         steps(16, 256, 16),
         128,
         "columns of an output tile (of the pair's with cta_group 2)",
         {},
         true},
        {"cta_group", {1, 2}, 1, "CTAs that one MMA spans: 2 = twice the rows over a pair", {}, true},
        cluster_knob("m"),
        cluster_knob("n"),
        {"preferred_m",
         {1, 2, 4},
         1,
         "clusters of so many times the rows where the hardware has room, else as cluster_m says",
         {},
         true},
        {"persistent",
         {kOneTile, kStatic, kClc},
         kOneTile,
         "one tile a CTA; CTAs that walk over tiles in a fixed order; or that take over clusters not yet "
         "started",
         {"no", "static", "clc"},
         true},
        {"acc_slots", {1, 2}, 1, "accumulators in tensor memory: 2 overlaps epilogue and MMA", {}, true},
        {"epilogue",
         {0, 1},
         0,
         "results go to global memory from registers, or through shared memory by TMA",
         {"direct", "tma_store"},
         true},
        {"epilogue_warps", {4, 8}, 4, "warps that drain an accumulator; 8 share its columns", {}, true},
        {"split_k",
         {1, 2, 3, 4, 6, 8, 12, 16},
         1,
         "parts along K, worked on by different clusters and added up in order",
         {},
         true},
        {"stream_k",
         {0, 1},
         0,
         "the last rounds of tiles are cut along K so that all clusters end together",
         {"no", "yes"},
         true},
        {"loader",
         {0, 1},
         0,
         "operands come by TMA, or by cp.async from all threads",
         {"tma", "cp_async"},
         true},
        {"warp_specialized",
         {0, 1},
         1,
         "copies, MMAs and epilogue in warps of their own; no: one thread after the other, the ladders' "
         "first steps",
         {"no", "yes"},
         true},
        {"mma_wait",
         {0, 1},
         0,
         "MMAs are waited for when their stage is needed again, or each at once",
         {"ring", "each"},
         true},
    };
    append_launch_knobs(knobs_);
    constraints_ = {
        {"tile_a",
         {"tile_k", "swizzle_a", "tile_m", "cluster_n", "swap_ab"},
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
         {"tile_k", "swizzle_b", "tile_n", "cta_group", "cluster_m", "preferred_m", "swap_ab"},
         [](const Config& c, const ConstraintScope& s) { return tile_violation(Knobs(c).tile_b(s.cls)); }},
        {"cluster",
         {"cluster_m", "cluster_n", "preferred_m"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           if (k.team_size() <= s.arch.max_cluster_size) return std::string();
           return fmt::format("cluster {} x {} = {} CTAs > {}, the portable maximum", k.team_m(), k.cluster_n,
                              k.team_size(), s.arch.max_cluster_size);
         }},
        {"warp_columns",
         {"tile_m", "tile_n", "cta_group", "epilogue_warps"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.warp_columns() % 16 == 0) return std::string();
           return fmt::format(
               "{} epilogue warps: {} columns of tensor memory give each {}, not a multiple of 16",
               k.epilogue_warps, k.lane_columns(), k.warp_columns());
         }},
        {"smem",
         {"stages", "tile_k", "tile_m", "tile_n", "cta_group", "acc_slots", "epilogue", "epilogue_warps"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           return smem_violation(k.stages, k.stage_bytes(s.cls), k.fixed_bytes(s.cls), s.arch);
         }},
        {"tmem",
         {"tile_m", "tile_n", "cta_group", "acc_slots"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.acc_slots * k.slot_columns() <= kTmemColumns) return std::string();
           return fmt::format("{} accumulators x {} columns = {} > {} columns of tensor memory", k.acc_slots,
                              k.slot_columns(), k.acc_slots * k.slot_columns(), kTmemColumns);
         }},
        {"preferred_clc",
         {"preferred_m", "persistent"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.preferred_m == 1 || k.persistent != kClc) return std::string();
           // PTX ISA "clusterlaunchcontrol" does not say which of the two kinds is handed over.
           return std::string(
               "preferred_m > 1 with persistent = clc: a cluster taken over may be of the other size");
         }},
        {"acc_slots",
         {"persistent", "acc_slots"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.acc_slots == 1 || k.persistent) return std::string();
           return std::string(
               "acc_slots = 2 without persistent: a CTA has one tile, the second accumulator is idle");
         }},
        {"tma_store",
         {"epilogue", "swap_ab"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           if (!k.epilogue) return std::string();
           if (k.swap_ab)
             return std::string(
                 "epilogue = tma_store with swap_ab: a warp's results are columns of D, no box has them");
           if (!s.shape || s.shape->n * size_bytes(s.cls.out) % 16 == 0) return std::string();
           return fmt::format(
               "epilogue = tma_store: rows of D are {} bytes apart, TMA needs a multiple of 16",
               s.shape->n * size_bytes(s.cls.out));
         }},
        // One rule for each knob that warp_specialized = no fixes: a rule that reads few knobs is judged
        // early.
        {"serial_cluster_m",
         {"cluster_m", "warp_specialized"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           return serial_violation(k, k.cluster_m == 1, "one CTA works alone, cluster_m must be 1");
         }},
        {"serial_cluster_n",
         {"cluster_n", "warp_specialized"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           return serial_violation(k, k.cluster_n == 1, "one CTA works alone, cluster_n must be 1");
         }},
        {"serial_preferred",
         {"preferred_m", "warp_specialized"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           return serial_violation(k, k.preferred_m == 1, "one CTA works alone, preferred_m must be 1");
         }},
        {"serial_persistent",
         {"persistent", "warp_specialized"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           return serial_violation(k, k.persistent == kOneTile, "a CTA has one tile, persistent must be no");
         }},
        {"loader",
         {"loader", "warp_specialized"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           return k.warp_specialized && k.loader
                      ? "loader = cp_async takes all threads: warp_specialized must be no"
                      : std::string();
         }},
        {"mma_wait",
         {"mma_wait", "warp_specialized"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           return k.warp_specialized && k.mma_wait
                      ? "mma_wait = each stalls the copies only without warp_specialized"
                      : std::string();
         }},
        {"stream_k",
         {"persistent", "split_k", "stream_k"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (!k.stream_k) return std::string();
           if (k.split_k > 1) return std::string("stream_k cuts K itself: split_k must be 1");
           if (k.persistent != kStatic)
             return std::string("stream_k shares the work among the CTAs of a static persistent grid");
           return std::string();
         }},
        {"size",
         {"tile_m", "tile_n", "cluster_m", "cluster_n", "preferred_m", "swap_ab", "split_k"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           if (!s.shape) return std::string();
           int64_t rows = int64_t{k.tile_m} * k.team_m(), columns = int64_t{k.tile_n} * k.cluster_n;
           return size_violation(*s.shape, k.swap_ab ? columns : rows, k.swap_ab ? rows : columns,
                                 k.team_size() * k.split_k);
         }},
        {"workspace",
         {"tile_m", "tile_n", "tile_k", "cluster_m", "cluster_n", "preferred_m", "swap_ab", "split_k",
          "stream_k"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           // stream_k needs two tiles for each CTA of the grid: never near the limit.
           if (!s.shape || k.split_k == 1) return std::string();
           int64_t bytes = k.workspace_bytes(*s.shape, 0);
           if (bytes <= kMaxWorkspaceBytes) return std::string();
           return fmt::format("split_k = {}: partial sums take {} MiB > {} MiB of workspace", k.split_k,
                              bytes >> 20, kMaxWorkspaceBytes >> 20);
         }},
        {"alignment",
         {},
         [](const Config&, const ConstraintScope& s) {
           return s.shape ? alignment_violation(s.cls, *s.shape) : std::string();
         }},
        {"serial_prefetch",
         {"warp_specialized", "prefetch"},
         [](const Config& c, const ConstraintScope&) {
           return serial_violation(Knobs(c), LaunchKnobs(c).prefetch == 0,
                                   "its one thread does not prefetch, prefetch must be 0");
         }},
        {"loader_l2",
         {"loader", "l2_a", "l2_b"},
         [](const Config& c, const ConstraintScope&) {
           LaunchKnobs launch(c);
           return Knobs(c).loader && (launch.l2_a || launch.l2_b)
                      ? "loader = cp_async carries no L2 hint: l2_a and l2_b must be normal"
                      : std::string();
         }},
    };
    append_launch_constraints(constraints_);
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
    LaunchPlan plan;
    // Clusters that wait in line for clc are a grid of all accumulations, as without persistence. What is
    // resident at once is known for the smaller clusters: a team may take the place of several.
    LaunchDevice teams{device.sm_count, device.max_active_clusters > 0
                                            ? std::max(1, device.max_active_clusters / k.preferred_m)
                                            : 0};
    plan.grid = {grid_ctas(k.output_tiles(s) * k.parts(s), k.team_size(), k.persistent == kStatic, teams)};
    plan.block = {static_cast<uint32_t>(k.threads())};
    plan.cluster = {static_cast<uint32_t>(k.cluster_size())};
    if (k.preferred_m > 1) plan.preferred_cluster = {static_cast<uint32_t>(k.team_size())};
    plan.dynamic_smem_bytes = k.stages * k.stage_bytes(cls) + k.fixed_bytes(cls);
    plan.workspace_bytes = k.workspace_bytes(s, plan.grid.x / k.team_size());
    TensorMapSpec map_a = tensor_map(k.tile_a(cls), cls.in, k.rows(s), s.k);
    plan.args = {
        map_a,
        tensor_map(k.tile_b(cls), cls.in, k.columns(s), s.k),
        k.epilogue ? output_map(k, cls, s) : map_a,  // a parameter that is not used must be a valid map
        PointerArg{k.tile_a(cls).operand},
        PointerArg{k.tile_b(cls).operand},
        PointerArg{Operand::d},
        PointerArg{Operand::c},
        PointerArg{Operand::workspace},
        static_cast<int32_t>(k.rows(s)),
        static_cast<int32_t>(k.columns(s)),
        static_cast<int32_t>(s.k),
        alpha,
        beta};
    append_launch_arguments(plan, LaunchKnobs(config), k.swap_ab);
    return plan;
  }

  TileShape tile(const Config& config, const ProblemClass& cls) const override {
    Knobs k(config);
    int per_cta = k.stages * k.stage_bytes(cls) + k.fixed_bytes(cls);
    return {k.swap_ab ? k.tile_n : k.tile_m,
            k.swap_ab ? k.tile_m : k.tile_n,
            k.tile_k,
            k.swap_ab ? k.cluster_n : k.team_m(),
            k.swap_ab ? k.team_m() : k.cluster_n,
            k.stages,
            k.stage_bytes(cls),
            std::min(k.swizzle_a, k.swizzle_b),
            k.persistent != kOneTile,
            k.threads(),
            std::clamp(std::min(kTmemColumns / tmem_columns(config), 233472 / (per_cta + 1024)), 1, 8),
            k.split_k,
            k.epilogue ? 16 / size_bytes(cls.out) : 1};
  }

  int tmem_columns(const Config& config) const override {
    Knobs k(config);
    return static_cast<int>(std::bit_ceil(static_cast<unsigned>(k.acc_slots * k.slot_columns())));
  }

  InstructionCounts expected_counts(const Config& config, const ProblemClass& cls) const override {
    Knobs k(config);
    InstructionCounts counts;
    counts.mma = k.tile_k / 16;
    counts.tma_load = k.loader ? 0 : k.tile_a(cls).copies() + k.tile_b(cls).copies();
    counts.tma_store = k.epilogue ? (k.reduces() ? 2 : 1) : 0;  // whole tiles, and sums of parts
    counts.commit = 2;                                          // stage free, accumulator full
    // Producer: empty, tail; MMA: accumulator empty, full; epilogue: accumulator full. With clc each of the
    // three waits for answers, and so does the warp that asks, which also waits for a place.
    counts.mbarrier_wait = 5 + (k.persistent == kClc ? 5 : 0);
    // Without specialization: empty, full (not with cp.async), each MMA or the tail; accumulator full.
    if (!k.warp_specialized) counts.mbarrier_wait = k.loader ? 3 : 4;
    counts.tmem_load = k.reduces() ? 2 : 1;
    counts.tmem_alloc = 1;
    return counts;
  }

 private:
  /// One warp's rows of one chunk of D.
  static TensorMapSpec output_map(const Knobs& k, const ProblemClass& cls, const Shape& s) {
    TensorMapSpec map;
    map.operand = Operand::d;
    map.type = cls.out;
    map.dims = {static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.m)};
    map.strides_bytes = {static_cast<uint64_t>(s.n) * static_cast<uint64_t>(size_bytes(cls.out))};
    map.box = {static_cast<uint32_t>(k.chunk()), static_cast<uint32_t>(k.rows_per_warp())};
    map.swizzle = k.box_span_bytes(cls) == 128  ? Swizzle::b128
                  : k.box_span_bytes(cls) == 64 ? Swizzle::b64
                                                : Swizzle::b32;
    return map;
  }
};

}  // namespace

const KernelFamily& sm100_gemm_family() {
  static const Sm100Gemm family;
  return family;
}

}  // namespace gemmtune
