// Options that several commands share, and what they mean.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gemm/shape_list.h"
#include "gpu/device_info.h"
#include "search/space.h"
#include "tool/table.h"

namespace gemmtune {

struct CommonOptions {
  std::vector<std::string> shapes;
  std::string shapes_file, arch, device = "auto", dtype = "bf16", out_dtype, a_major = "k", b_major = "k",
                                 db = "gemmtune.db", format = "table";
  std::vector<std::string> set;
  double alpha = 1, beta = 0;
};

/// Each adds the options of its group to a command.
void add_shape_options(CLI::App& app, CommonOptions& o);
void add_type_options(CLI::App& app, CommonOptions& o);
void add_scaling_options(CLI::App& app, CommonOptions& o);
void add_arch_option(CLI::App& app, CommonOptions& o);
void add_device_option(CLI::App& app, CommonOptions& o);
void add_set_option(CLI::App& app, CommonOptions& o);
void add_db_option(CLI::App& app, CommonOptions& o);
void add_format_option(CLI::App& app, CommonOptions& o);

/// --shape and --shapes together, in that order. Throws UsageError; with `required`, also if there is none.
std::vector<ListedShape> listed_shapes(const CommonOptions& o, bool required);
ProblemClass problem_class(const CommonOptions& o);
/// Whether the command line named any part of the class; where it did not, queries take every class.
bool names_class(const CLI::App& app);

/// Where to run and what to compile for.
struct Target {
  const ArchSpec* arch;
  std::optional<GpuInfo> gpu;
  bool emulated = false;      ///< no GPU: validate on the CPU. Neither: compile only
  std::string no_gpu_reason;  ///< why, for one line to the user
};
/// --device auto takes the first GPU that runs the architecture, else the emulator. Throws UsageError for an
/// explicit device that cannot.
Target target(const CommonOptions& o);

/// How many compile workers `--jobs` means: 0, its default, all cores. Throws UsageError.
int worker_count(int jobs);

Restrictions restrictions(const CommonOptions& o, const KernelFamily& family);

/// "10m", "90s", "2h", "45" (seconds). Throws UsageError.
std::chrono::seconds parse_duration(const std::string& text);

/// The device whose published rates bound a problem: the GPU at hand if it is known, else the architecture's.
const DeviceSpec& rates_for(const Target& target);

}  // namespace gemmtune
