// A ladder: the steps by which somebody made a kernel fast, each as a configuration of a family, with the
// instruction counts that it must have and those of the original.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace gemmtune {

/// One count of a step. Without `original` the source does not give it, or it is not comparable.
struct LadderCount {
  std::optional<int> ours, original;
};

struct LadderStep {
  int64_t line = 0;  ///< in the file
  std::string name;
  Config config;
  ProblemClass cls;
  LadderCount mma, tma_load, commit, wait, tmem_load, tmem_columns;
  std::string remark;  ///< where the step comes from, and why a count differs from the original's
};

/// The counts' columns, in the order of the file's header and of tables.
struct LadderColumn {
  const char* name;
  LadderCount LadderStep::*count;
};
inline constexpr LadderColumn kLadderColumns[] = {{"mma", &LadderStep::mma},
                                                  {"tma_load", &LadderStep::tma_load},
                                                  {"commit", &LadderStep::commit},
                                                  {"wait", &LadderStep::wait},
                                                  {"tmem_load", &LadderStep::tmem_load},
                                                  {"tmem_columns", &LadderStep::tmem_columns}};

/// CSV with a header: step, config, class, and any of the counts' columns and remark. A count is "4", both in
/// ours and in the original; "5 (seed 3)"; "5 (design)", which the original does not give; or empty. Every
/// step must be legal for the family. Throws UsageError with file, line and what to change.
std::vector<LadderStep> read_ladder(const std::filesystem::path& path, const KernelFamily& family,
                                    const ArchSpec& arch);
/// The same for text in hand; `file` is what messages call it.
std::vector<LadderStep> parse_ladder(std::string_view text, std::string_view file, const KernelFamily& family,
                                     const ArchSpec& arch);

}  // namespace gemmtune
