#include "db/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "db/queries.h"
#include "db/record_json.h"

namespace gemmtune {
namespace {

struct FoundWinner {
  ExportRow row;
  int64_t winner_id;
  bool due;
  bool evidence_complete;
};

std::vector<FoundWinner> read_winners(Store& store, Regime regime, bool warm_l2) {
  std::vector<FoundWinner> found;
  Statement row(
      store.connection(),
      "SELECT w.id, p.class, p.m, p.n, p.k, t.arch, c.family, c.text, w.device_id, t.protocol, t.warm, "
      "t.median_us, (SELECT count(*) FROM sample WHERE trial_id = t.id AND final_round = t.finalist AND mark "
      "= ''), "
      "(SELECT count(*) FROM winner_tie WHERE winner_id = w.id), w.ratio_low, w.ratio_high, tc.compiler, "
      "tc.version, k.key, t.validated_by, w.evidence, t.created_at, w.updated_at, "
      "EXISTS (SELECT 1 FROM winner_due d WHERE d.problem_id = w.problem_id AND d.device_id = w.device_id "
      "AND d.regime = w.regime AND d.warm = w.warm), t.validation, t.graph_us, t.launch_bound "
      "FROM winner w JOIN problem p ON p.id = w.problem_id JOIN trial t ON t.id = w.trial_id "
      "JOIN config c ON c.id = t.config_id LEFT JOIN kernel k ON k.id = t.kernel_id "
      "LEFT JOIN toolchain tc ON tc.id = k.toolchain_id WHERE w.regime = ? AND w.warm = ? AND t.protocol = "
      "?");
  row.bind(name(regime), warm_l2, Timing().protocol);
  while (row.step()) {
    ExportRow r;
    r.problem = {parse_problem_class(row.text(1)), {row.integer(2), row.integer(3), row.integer(4)}};
    r.arch = row.text(5);
    r.family = row.text(6);
    r.config = row.text(7);
    r.device = store.device(row.integer(8));
    r.regime = regime;
    r.protocol = row.text(9);
    r.warm_l2 = row.integer(10) != 0;
    r.median_us = row.real(11);
    r.samples = row.small(12);
    r.tie_set = row.small(13);
    r.ratio_low = row.real(14);
    r.ratio_high = row.real(15);
    r.toolchain = row.text(16) + (row.is_null(17) ? "" : " ") + row.text(17);
    r.kernel_key = row.text(18);
    r.validated_by = row.text(19);
    r.evidence = row.text(20);
    r.measured_at = row.text(21);
    r.updated_at = row.text(22);
    r.launch_cost = launch_cost(row, 25);
    Validation validation{ValidatedBy::gpu, validation_from_json(row.text(24))};
    found.push_back({std::move(r), row.integer(0), row.integer(23) != 0, validation.passed()});
  }
  return found;
}

bool admits(const ExportFilter& filter, const ExportRow& row) {
  return (filter.problems.empty() ||
          std::ranges::find(filter.problems, row.problem) != filter.problems.end()) &&
         (!filter.cls || *filter.cls == row.problem.cls) && (!filter.arch || *filter.arch == row.arch) &&
         (!filter.device_uuid || *filter.device_uuid == row.device.uuid) &&
         (!filter.device_name || *filter.device_name == row.device.name);
}

auto key(const ExportRow& row) { return std::tuple(row.arch, row.problem); }

std::string describe(const ExportRow& row) {
  return fmt::format("{} {} on {}", to_string(row.problem.shape), to_string(row.problem.cls),
                     row.device.name);
}

/// RFC 4180; a leading '=' and the like is left alone: knob values and names do not start so.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string ratio_text(double ratio) { return ratio > 0 ? fmt::format("{:.4f}", ratio) : ""; }

}  // namespace

Exportable exportable_winners(Store& store, const ExportFilter& filter) {
  Exportable result;
  for (FoundWinner& found : read_winners(store, filter.regime, filter.warm_l2)) {
    if (!admits(filter, found.row)) continue;
    if (found.due) {
      result.skipped.push_back(describe(found.row) +
                               ": trials came in since this winner was chosen; choose again first");
    } else if (!found.evidence_complete) {
      result.skipped.push_back(describe(found.row) + ": the evidence of its validation is incomplete");
    } else {
      result.rows.push_back(std::move(found.row));
    }
  }
  std::ranges::sort(result.rows, [](const ExportRow& a, const ExportRow& b) {
    return std::tuple(key(a), b.updated_at, b.device.uuid) < std::tuple(key(b), a.updated_at, a.device.uuid);
  });
  std::vector<ExportRow> unique;
  for (ExportRow& row : result.rows) {
    if (unique.empty() || key(unique.back()) != key(row)) {
      unique.push_back(std::move(row));
    } else if (unique.back().device.name != row.device.name) {
      throw UsageError(fmt::format("{} {} {} has winners on '{}' and on '{}': choose one with --device",
                                   row.arch, to_string(row.problem.shape), to_string(row.problem.cls),
                                   unique.back().device.name, row.device.name));
    } else {
      result.skipped.push_back(describe(row) + fmt::format(" ({}, driver {}): a newer answer exists",
                                                           row.device.uuid, row.device.driver_version));
    }
  }
  result.rows = std::move(unique);
  return result;
}

std::string to_json(std::span<const ExportRow> rows, const Provenance& provenance) {
  using Json = nlohmann::ordered_json;
  Json winners = Json::array();
  for (const ExportRow& r : rows) {
    const ProblemClass& c = r.problem.cls;
    winners.push_back({{"arch", r.arch},
                       {"in", name(c.in)},
                       {"out", name(c.out)},
                       {"a_major", c.a_major == Major::k ? "k" : "m"},
                       {"b_major", c.b_major == Major::k ? "k" : "n"},
                       {"beta", c.beta},
                       {"m", r.problem.shape.m},
                       {"n", r.problem.shape.n},
                       {"k", r.problem.shape.k},
                       {"family", r.family},
                       {"config", Json::parse(config_to_json(r.config))},
                       {"config_text", r.config},
                       {"median_us", r.median_us},
                       {"tflops", tflops(r.problem.shape, r.median_us)},
                       {"samples", r.samples},
                       {"tie_set", r.tie_set},
                       {"ratio_low", r.ratio_low > 0 ? Json(r.ratio_low) : Json()},
                       {"ratio_high", r.ratio_high > 0 ? Json(r.ratio_high) : Json()},
                       {"graph_us", r.launch_cost ? Json(r.launch_cost->graph_us) : Json()},
                       {"launch_bound", r.launch_cost ? Json(r.launch_cost->launch_bound) : Json()},
                       {"device", r.device.name},
                       {"device_uuid", r.device.uuid},
                       {"driver", r.device.driver_version},
                       {"toolchain", r.toolchain},
                       {"kernel", r.kernel_key},
                       {"regime", name(r.regime)},
                       {"protocol", r.protocol},
                       {"warm_l2", r.warm_l2},
                       {"validated_by", r.validated_by},
                       {"evidence", r.evidence},
                       {"measured_at", r.measured_at}});
  }
  Json document = {{"gemmtune", provenance.tool_version},
                   {"database", provenance.database},
                   {"exported_at", provenance.exported_at},
                   {"winners", std::move(winners)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_csv(std::span<const ExportRow> rows) {
  std::vector<std::string> knobs;
  for (const ExportRow& row : rows)
    for (const auto& [knob, value] : config_items(row.config))
      if (std::ranges::find(knobs, knob) == knobs.end()) knobs.push_back(knob);
  std::string csv = "arch,in,out,a_major,b_major,beta,m,n,k,family";
  for (const std::string& knob : knobs) csv += "," + csv_field(knob);
  csv +=
      ",median_us,tflops,samples,tie_set,ratio_low,ratio_high,device,device_uuid,driver,toolchain,regime,"
      "protocol,"
      "warm_l2,validated_by,evidence,measured_at\n";
  for (const ExportRow& r : rows) {
    const ProblemClass& c = r.problem.cls;
    csv += fmt::format("{},{},{},{},{},{:d},{},{},{},{}", r.arch, name(c.in), name(c.out),
                       c.a_major == Major::k ? 'k' : 'm', c.b_major == Major::k ? 'k' : 'n', c.beta,
                       r.problem.shape.m, r.problem.shape.n, r.problem.shape.k, csv_field(r.family));
    std::map<std::string, std::string> values;
    for (auto& [knob, value] : config_items(r.config)) values[knob] = value;
    for (const std::string& knob : knobs) csv += "," + csv_field(values[knob]);
    csv +=
        fmt::format(",{},{:.2f},{},{},{},{},{},{},{},{},{},{},{:d},{},{},{}\n", r.median_us,
                    tflops(r.problem.shape, r.median_us), r.samples, r.tie_set, ratio_text(r.ratio_low),
                    ratio_text(r.ratio_high), csv_field(r.device.name), csv_field(r.device.uuid),
                    csv_field(r.device.driver_version), csv_field(r.toolchain), name(r.regime),
                    csv_field(r.protocol), r.warm_l2, r.validated_by, csv_field(r.evidence), r.measured_at);
  }
  return csv;
}

}  // namespace gemmtune
