// Host side of sm90_gemm.cu: knobs, constraints with their reasons, launch plan, expected instruction counts.
#include "kernel_templates/sm90_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel_templates/launch_knobs.h"
#include "kernel_templates/tma_operand.h"

namespace gemmtune {
namespace {

struct Knobs {
  int stages, tile_k, swizzle_a, swizzle_b, tile_m, tile_n, consumers, cluster_m, cluster_n, persistent;

  explicit Knobs(const Config& c)
      : stages(c.values[0]),
        tile_k(c.values[1]),
        swizzle_a(c.values[2]),
        swizzle_b(c.values[3]),
        tile_m(c.values[4]),
        tile_n(c.values[5]),
        consumers(c.values[6]),
        cluster_m(c.values[7]),
        cluster_n(c.values[8]),
        persistent(c.values[9]) {}

  int cluster_size() const { return cluster_m * cluster_n; }
  int threads() const { return 128 * (consumers + 1); }
  int barrier_bytes() const { return 16 * stages; }
  int blocks() const { return tile_m / 64 / consumers; }
  /// f32 accumulators of one thread: a 64 x tile_n block is spread over 128 threads.
  int accumulator_registers() const { return blocks() * tile_n / 2; }
  OperandTileSpec tile_a(const ProblemClass& cls) const {
    return {Operand::a, tile_m, tile_k, cls.a_major, swizzle_a, cluster_n};
  }
  OperandTileSpec tile_b(const ProblemClass& cls) const {
    return {Operand::b, tile_n, tile_k, cls.b_major, swizzle_b, cluster_m};
  }
  int stage_bytes(const ProblemClass& cls) const {
    return tile_a(cls).stride_bytes() + tile_b(cls).stride_bytes();
  }
  int ctas_per_sm(const ProblemClass& cls) const {
    // Two consumers: 384 threads x 168 registers fill the register file. One: accumulators and about 50 more.
    int by_registers = consumers == 2 ? 1 : 65536 / (256 * (accumulator_registers() + 50));
    return std::clamp(std::min(by_registers, 233472 / (stages * stage_bytes(cls) + 1024)), 1, 8);
  }
};

/// More than this and the compiler spills: 232 registers a thread, less the addresses, descriptors and loop
/// state.
constexpr int kMaxAccumulators = 192;

/// The MMA of this variant's tile_n, whose register list cannot be written as a C++ template.
std::string wgmma_wrapper(int n, const ProblemClass& cls) {
  std::string registers, operands;
  for (int i = 0; i < n / 2; ++i) {
    bool line_end = i % 16 == 15 && i + 1 < n / 2;
    registers += fmt::format("%{}{}", i, i + 1 == n / 2 ? "" : line_end ? ",\"\n      \" " : ", ");
    operands += fmt::format("\"+f\"(d[{}]){}", i, i + 1 == n / 2 ? "" : line_end ? ",\n        " : ", ");
  }
  std::string_view type = name(cls.in);
  return fmt::format(
      "/// D[64 x {0}] = A x B (+ D if accumulate); 16 elements of K. PTX ISA \"wgmma.mma_async\".\n"
      "DEVICE void wgmma_tile_n(float (&d)[{1}], u64 a, u64 b, bool accumulate) {{\n"
      "  asm volatile(\n"
      "      \"{{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, %{2}, 0;\\n\\t\"\n"
      "      \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{3}.{3} \"\n"
      "      \"{{{4}}}, \"\n"
      "      \"%{5}, %{6}, p, 1, 1, {7}, {8};\\n\\t}}\"\n"
      "      : {9}\n"
      "      : \"l\"(a), \"l\"(b), \"r\"(u32{{accumulate}}));\n"
      "}}\n\n",
      n, n / 2, n / 2 + 2, type, registers, n / 2, n / 2 + 1, cls.a_major == Major::mn ? 1 : 0,
      cls.b_major == Major::mn ? 1 : 0, operands);
}

class Sm90Gemm final : public KernelFamily {
 public:
  Sm90Gemm() {
    knobs_ = {
        stages_knob({1, 2, 3, 4, 5, 6, 7, 8, 10, 12}, 4),
        {"tile_k", {16, 32, 64, 128}, 64, "depth of one stage, elements of K", {}, true},
        swizzle_knob("a"),
        swizzle_knob("b"),
        {"tile_m", {64, 128, 256}, 128, "rows of an output tile", {}, true},
        {"tile_n", {16, 32, 64, 96, 128, 160, 192, 224, 256}, 128, "columns of an output tile", {}, true},
        {"consumers", {1, 2}, 2, "warpgroups that multiply; each owns tile_m / consumers rows", {}, true},
        cluster_knob("m"),
        cluster_knob("n"),
        {"persistent", {0, 1}, 0, "one tile a CTA, or CTAs that walk over tiles", {"no", "static"}, true},
    };
    append_launch_knobs(knobs_);
    constraints_ = {
        {"consumers",
         {"tile_m", "consumers"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.tile_m % (64 * k.consumers) == 0) return std::string();
           return fmt::format("tile_m = {} cannot be cut into {} consumers of whole 64-row MMAs", k.tile_m,
                              k.consumers);
         }},
        {"accumulators",
         {"tile_m", "tile_n", "consumers"},
         [](const Config& c, const ConstraintScope&) {
           Knobs k(c);
           if (k.accumulator_registers() <= kMaxAccumulators) return std::string();
           return fmt::format(
               "{} x {} accumulators over {} consumers = {} registers a thread > {} that leave room",
               k.tile_m, k.tile_n, k.consumers, k.accumulator_registers(), kMaxAccumulators);
         }},
        {"tile_a",
         {"tile_k", "swizzle_a", "tile_m", "cluster_n"},
         [](const Config& c, const ConstraintScope& s) { return tile_violation(Knobs(c).tile_a(s.cls)); }},
        {"tile_b",
         {"tile_k", "swizzle_b", "tile_n", "cluster_m"},
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
         {"stages", "tile_k", "tile_m", "tile_n"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           return smem_violation(k.stages, k.stage_bytes(s.cls), k.barrier_bytes(), s.arch);
         }},
        {"size",
         {"tile_m", "tile_n", "cluster_m", "cluster_n"},
         [](const Config& c, const ConstraintScope& s) {
           Knobs k(c);
           if (!s.shape) return std::string();
           return size_violation(*s.shape, int64_t{k.tile_m} * k.cluster_m, int64_t{k.tile_n} * k.cluster_n,
                                 k.cluster_size());
         }},
        {"alignment",
         {},
         [](const Config&, const ConstraintScope& s) {
           return s.shape ? alignment_violation(s.cls, *s.shape) : std::string();
         }},
    };
    append_launch_constraints(constraints_);
  }

  std::string_view name() const override { return "sm90_gemm"; }
  std::string_view entry() const override { return "sm90_gemm"; }
  std::string_view template_file() const override { return "sm90_gemm.cu"; }
  bool supports(const ArchSpec& arch) const override { return arch.has_wgmma; }

  std::string preamble(const Config& config, const ProblemClass& cls, const ArchSpec&) const override {
    return wgmma_wrapper(Knobs(config).tile_n, cls);
  }

  LaunchPlan plan(const Config& config, const ProblemClass& cls, const ArchSpec&, const Shape& s,
                  const LaunchDevice& device, float alpha, float beta) const override {
    Knobs k(config);
    int64_t clusters =
        tiles(s.m, int64_t{k.tile_m} * k.cluster_m) * tiles(s.n, int64_t{k.tile_n} * k.cluster_n);
    LaunchPlan plan;
    plan.grid = {grid_ctas(clusters, k.cluster_size(), k.persistent, device)};
    plan.block = {static_cast<uint32_t>(k.threads())};
    plan.cluster = {static_cast<uint32_t>(k.cluster_size())};
    plan.dynamic_smem_bytes = k.stages * k.stage_bytes(cls) + k.barrier_bytes();
    plan.args = {tensor_map(k.tile_a(cls), cls.in, s.m, s.k),
                 tensor_map(k.tile_b(cls), cls.in, s.n, s.k),
                 PointerArg{Operand::d},
                 PointerArg{Operand::c},
                 static_cast<int32_t>(s.m),
                 static_cast<int32_t>(s.n),
                 static_cast<int32_t>(s.k),
                 alpha,
                 beta};
    append_launch_arguments(plan, LaunchKnobs(config), false);
    return plan;
  }

  TileShape tile(const Config& config, const ProblemClass& cls) const override {
    Knobs k(config);
    return {k.tile_m,          k.tile_n,    k.tile_k,           k.cluster_m,
            k.cluster_n,       k.stages,    k.stage_bytes(cls), std::min(k.swizzle_a, k.swizzle_b),
            k.persistent != 0, k.threads(), k.ctas_per_sm(cls)};
  }

  int tmem_columns(const Config&) const override { return 0; }

  InstructionCounts expected_counts(const Config& config, const ProblemClass& cls) const override {
    Knobs k(config);
    InstructionCounts counts;
    counts.mma = k.tile_k / 16 * k.blocks();
    counts.tma_load = k.tile_a(cls).copies() + k.tile_b(cls).copies();
    counts.mbarrier_wait = 2;  // producer: empty; consumer: full
    return counts;
  }
};

}  // namespace

const KernelFamily& sm90_gemm_family() {
  static const Sm90Gemm family;
  return family;
}

}  // namespace gemmtune
