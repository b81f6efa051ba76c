// Winners for other programs: JSON, CSV and (export_header.cc) a self-contained C++17 header.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"
#include "kernel_templates/knob.h"

namespace gemmtune {

/// Absent or empty fields match everything, but a table holds one regime and one cache state.
struct ExportFilter {
  std::vector<Problem> problems = {};
  std::optional<ProblemClass> cls = {};
  std::optional<std::string> arch = {};
  std::optional<std::string> device_uuid = {};
  std::optional<std::string> device_name = {};
  Regime regime = Regime::burst;
  bool warm_l2 = false;
};

/// A winner with all that its user may ask about.
struct ExportRow {
  Problem problem;
  std::string arch, family, config;
  DeviceRecord device;
  Regime regime = Regime::burst;
  std::string protocol;
  bool warm_l2 = false;
  double median_us = 0;
  int samples = 0;                       ///< behind the median
  int tie_set = 0;                       ///< members, the winner included
  double ratio_low = 0, ratio_high = 0;  ///< as Winner; 0 = none
  std::optional<LaunchCost> launch_cost;
  std::string toolchain;  ///< "nvrtc 13.0.88"
  std::string kernel_key;
  std::string validated_by;
  std::string evidence;
  std::string measured_at, updated_at;
};

/// Where the table comes from.
struct Provenance {
  std::string tool_version;
  std::string database;
  std::string exported_at;  ///< UTC
};

struct Exportable {
  std::vector<ExportRow> rows;       ///< by arch, class, shape; each key once
  std::vector<std::string> skipped;  ///< one line per winner that is left out, with the reason
};

/// The stored winners whose evidence is complete and that are not due for recomputation. The same shape won
/// on two GPUs of one name: the newer answer stands. On GPUs of different names: UsageError, because no
/// lookup could tell them apart.
Exportable exportable_winners(Store& store, const ExportFilter& filter);

/// The knobs of a family, nullptr where this build does not know it.
using KnobsOf = std::function<const std::vector<Knob>*(std::string_view family)>;

std::string to_json(std::span<const ExportRow> rows, const Provenance& provenance);
/// One column per knob; empty where a family lacks it.
std::string to_csv(std::span<const ExportRow> rows);
/// Compiles as C++17 with -Wall -Wextra -pedantic, also without any row; needs only <cstddef> and <cstdint>.
std::string to_header(std::span<const ExportRow> rows, const Provenance& provenance, const KnobsOf& knobs_of);

}  // namespace gemmtune
