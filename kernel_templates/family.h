// A kernel family: one complete CUDA template and the host-side knowledge of it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/arch.h"
#include "gemm/launch_plan.h"
#include "gemm/problem.h"
#include "kernel_templates/ablation.h"
#include "kernel_templates/knob.h"

namespace gemmtune {

/// What a constraint may look at beside the config.
struct ConstraintScope {
  const ArchSpec& arch;
  ProblemClass cls;
  std::optional<Shape> shape;  ///< absent: is the variant legal at all?
};

/// The part of a device that a launch plan depends on.
struct LaunchDevice {
  int sm_count = 0;
  /// How many clusters of this plan's size are resident at once; 0 = not known (sm_count / cluster size is
  /// used). On an H200 clusters of 4 leave 12 SMs idle (ptx-facts section 10.1), so executors with a GPU ask
  /// the driver.
  int max_active_clusters = 0;
};

/// What a cost model may know of a variant: no knob names.
struct TileShape {
  int tile_m, tile_n, tile_k;  ///< output tile of one CTA and the depth of one stage, elements
  int cluster_m, cluster_n;    ///< CTAs
  int stages;
  int stage_bytes;  ///< per CTA
  int span_bytes;   ///< the narrower of both operands' shared-memory rows: 16 (no swizzle) to 128
  bool persistent;
  int threads;
  int ctas_per_sm;     ///< that shared memory, registers and tensor memory allow at once
  int split_k = 1;     ///< parts along K that different CTAs work on
  int n_multiple = 1;  ///< N must be a multiple of this: TMA stores rows of a multiple of 16 bytes
};

/// Instruction counts in the PTX text (static, not executed), as the B200 ladder prints them
/// (seed 000_b7f4eb2624be9cfc.txt, section 4).
struct InstructionCounts {
  int mma = 0, tma_load = 0, tma_store = 0, commit = 0, mbarrier_wait = 0, tmem_load = 0, tmem_alloc = 0;
  bool operator==(const InstructionCounts&) const = default;
};

/// A rejected configuration's reason, with the numbers.
struct Constraint {
  std::string name;
  std::vector<std::string> knobs;  ///< those it reads; the space checks it as soon as these are set
  /// Empty when satisfied.
  std::function<std::string(const Config&, const ConstraintScope&)> violated;
};

/// One family. Immutable, registered once in families().
class KernelFamily {
 public:
  virtual ~KernelFamily() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view entry() const = 0;          ///< the kernel's extern "C" name
  virtual std::string_view template_file() const = 0;  ///< "sm100_gemm.cu"
  virtual bool supports(const ArchSpec& arch) const = 0;

  const std::vector<Knob>& knobs() const { return knobs_; }
  const std::vector<Constraint>& constraints() const { return constraints_; }
  Config default_config() const;
  int value(const Config& config, std::string_view knob) const;

  /// The typed constexpr preamble of a variant; render() (render.h) puts the template behind it.
  virtual std::string preamble(const Config&, const ProblemClass&, const ArchSpec&) const = 0;
  /// Alpha and beta are run-time arguments. The config must be legal for the shape.
  virtual LaunchPlan plan(const Config&, const ProblemClass&, const ArchSpec&, const Shape&,
                          const LaunchDevice&, float alpha, float beta) const = 0;
  virtual TileShape tile(const Config&, const ProblemClass&) const = 0;
  /// Tensor-memory columns that the kernel allocates; 0 without tensor memory.
  virtual int tmem_columns(const Config&) const = 0;
  /// What the design implies; the compiled PTX is compared with it.
  virtual InstructionCounts expected_counts(const Config&, const ProblemClass&) const = 0;

 protected:
  std::vector<Knob> knobs_;
  std::vector<Constraint> constraints_;
};

std::span<const KernelFamily* const> families();
/// Throws UsageError where no family covers the architecture.
const KernelFamily& family_for(const ArchSpec& arch);
/// nullptr if unknown.
const KernelFamily* find_family(std::string_view name);

/// Config + problem class + architecture (+ the family that gives them meaning).
struct Variant {
  const KernelFamily* family = nullptr;
  const ArchSpec* arch = nullptr;
  ProblemClass cls;
  Config config;
  Ablation ablation = Ablation::none;
};

}  // namespace gemmtune
