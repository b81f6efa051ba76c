// The records of tuning: what was tried, what came of it, and on what evidence. Plain data; the database
// stores exactly this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/fill.h"
#include "gemm/problem.h"
#include "kernel_templates/family.h"

namespace gemmtune {

/// How a trial ended. Only `ok` can win, be exported or be called best.
enum class Outcome {
  ok,        ///< validated (and timed where a GPU was there)
  compiled,  ///< static evidence only: listed, never ranked
  compile_failed,
  rejected_static,  ///< spills, a stack frame, too much shared memory, wrong TMEM columns
  launch_failed,
  wrong_result,
  timed_out,
  crashed,
  unstable,  ///< results differ between launches, or times that never settle
};
std::string_view name(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);
/// Every outcome, for tables.
inline constexpr Outcome kAllOutcomes[] = {Outcome::ok,
                                           Outcome::compiled,
                                           Outcome::compile_failed,
                                           Outcome::rejected_static,
                                           Outcome::launch_failed,
                                           Outcome::wrong_result,
                                           Outcome::timed_out,
                                           Outcome::crashed,
                                           Outcome::unstable};

/// Compiler and target, part of a kernel's identity.
struct Toolchain {
  std::string compiler = "nvrtc";
  std::string version;  ///< "13.0.88"
  auto operator<=>(const Toolchain&) const = default;
};

/// A GPU (or the emulator) that ran trials. `uuid` empty: static work without any device.
struct DeviceRecord {
  std::string uuid;
  std::string name;  ///< "NVIDIA H200", "emulator", "none"
  std::string arch;  ///< "sm_90a"
  int sm_count = 0;
  int64_t l2_bytes = 0;
  int max_sm_clock_khz = 0;
  std::string driver_version;  ///< of the emulator: its own
  bool takes_times() const { return name != "emulator" && name != "none"; }
};

/// What the compiler says of a kernel.
struct StaticEvidence {
  int registers = 0;
  int spill_store_bytes = 0, spill_load_bytes = 0;
  int stack_bytes = 0;
  int static_smem_bytes = 0;
  int dynamic_smem_bytes = 0;  ///< from the launch plan
  int tmem_columns = 0;
  InstructionCounts counts;
};

/// A cubin and where it comes from. `key` is the SHA-256 of everything that goes in: source (headers
/// inlined), options, compiler version, target.
struct CompiledKernel {
  std::string key;
  std::string family, arch, problem_class, config;  ///< canonical texts
  Toolchain toolchain;
  bool ok = false;
  std::string cubin;  ///< ELF bytes; empty when !ok
  std::string ptx;    ///< what the emulator runs; empty in rows of older databases
  StaticEvidence evidence;
  double compile_ms = 0;  ///< NVRTC, wall time
  std::string log;        ///< compiler messages; the first error when !ok
};

/// One comparison of a result with its reference.
struct ValidationCase {
  Fill fill = Fill::sharp;
  Shape shape;
  int64_t elements = 0;
  int64_t mismatches = 0;  ///< elements outside the bound (integer fills: not bit-equal)
  double max_abs_error = 0;
  double max_error_over_bound = 0;  ///< normal fill: largest |error| / bound; integer fills: 0
  bool guards_intact = true;
  bool repeatable = true;      ///< bit-identical over launches
  std::string first_mismatch;  ///< "row 3, column 9: got 1.5, want 2" or empty
  bool passed() const { return mismatches == 0 && guards_intact && repeatable; }
};

enum class ValidatedBy { none, gpu, emulator };
std::string_view name(ValidatedBy by);

struct Validation {
  ValidatedBy by = ValidatedBy::none;
  std::vector<ValidationCase> cases;
  bool passed() const;
};

enum class Regime { burst, sustained };
std::string_view name(Regime regime);
/// Throws UsageError.
Regime parse_regime(std::string_view text);

/// How times are taken: part of a trial's identity. Times of different timings are never mixed.
struct Timing {
  Regime regime = Regime::burst;
  std::string protocol = "p1";
  bool warm_l2 = false;
  bool operator==(const Timing&) const = default;
};

/// Why a sample does not count. It is stored all the same, and taken again.
enum class SampleMark {
  none,
  throttled,  ///< the clock was held down for heat or by the board's power brake; the power cap is normal
  contended,  ///< another process computed on the GPU
};
std::string_view name(SampleMark mark);  ///< "" for none
SampleMark parse_sample_mark(std::string_view text);

/// One timed batch of back-to-back launches.
struct Sample {
  double time_us = 0;        ///< per launch
  int launches = 0;          ///< in the batch
  int round = 0;             ///< interleaving round: what shares its number was taken side by side
  bool final_round = false;  ///< of the finalists' fresh, interleaved re-measurement; else of the screening
  int sm_clock_khz = 0;      ///< NVML, 0 = not read
  int power_mw = 0;
  int temperature_c = 0;
  uint64_t event_reasons = 0;  ///< NVML clock event reasons bit mask
  SampleMark mark = SampleMark::none;
};

/// Plain launches beside a CUDA graph that replays the same launches. Where the graph is clearly faster the
/// plain time is the host's, not the kernel's (search/launch_cost.h).
struct LaunchCost {
  double graph_us = 0;  ///< per launch, median
  bool launch_bound = false;
};

/// Times of one trial under one protocol and regime. All samples are kept.
struct Measurement {
  std::string protocol = "p1";
  Regime regime = Regime::burst;
  bool warm_l2 = false;
  std::vector<Sample> samples;
  Timing timing() const { return {regime, protocol, warm_l2}; }
  /// Samples that count, none of them marked: those of the final rounds where there are any, else those of
  /// the screening, which also chose the finalists and so flatters the chosen.
  std::vector<Sample> counting_samples() const;
  std::vector<double> counting_times_us() const;
  bool has_final_rounds() const;
  /// 0 if nothing counts.
  double median_us() const;
  /// (75th - 25th percentile) / median.
  double relative_spread() const;
};

/// Without samples yet.
inline Measurement unmeasured(const Timing& timing) {
  return {timing.protocol, timing.regime, timing.warm_l2, {}};
}

/// Time from the cost model. Never mixed with a Measurement.
struct Prediction {
  std::string model;  ///< version of the model
  double time_us = 0;
  std::string bound_by;  ///< "tensor", "dram", ...
};

/// One variant tried on one problem on one device.
struct Trial {
  Problem problem;
  std::string family, arch, config;  ///< canonical texts
  std::string kernel_key;            ///< CompiledKernel::key; empty if nothing was compiled
  Outcome outcome = Outcome::compiled;
  std::string stage;    ///< where it ended: compile, static, load, validate, time, done
  std::string message;  ///< why, for every outcome but ok and compiled
  Validation validation;
  std::optional<Measurement> measurement;
  std::optional<Prediction> prediction;
  double wall_ms = 0;  ///< cost of this trial
};

/// 95 % confidence.
struct Interval {
  double low = 0, high = 0;
  auto operator<=>(const Interval&) const = default;
};

/// A trial that cannot be separated from the best.
struct Tie {
  int64_t trial_id = 0;
  Interval ratio;  ///< its time / the winner's; 1 to 1 for the winner itself
  bool operator==(const Tie&) const = default;
};

/// The stored answer for one problem, device and timing.
struct Winner {
  Problem problem;
  std::string device_uuid;
  Regime regime = Regime::burst;
  bool warm_l2 = false;
  int64_t trial_id = 0;
  double median_us = 0;
  std::vector<Tie> ties;  ///< best median first; the winner is one of them
  double ratio_low = 0,
         ratio_high = 0;   ///< 95 % interval of (runner-up outside the tie set) / (winner); 0 = none
  int final_rounds = 0;    ///< counting final samples behind it; 0: chosen by the screening alone
  std::string evidence;    ///< one line: how it was validated and timed
  std::string updated_at;  ///< when it was chosen; the store writes it
};

}  // namespace gemmtune
