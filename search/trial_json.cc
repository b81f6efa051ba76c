#include "search/trial_json.h"

#include <cmath>
#include <limits>

namespace gemmtune {
namespace {

/// JSON has no infinities and NaNs, and a wrong kernel's error has: they travel as words.
nlohmann::json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number(const nlohmann::json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Fill fill_from(const std::string& text) {
  for (Fill fill : kAllFills)
    if (name(fill) == text) return fill;
  throw std::runtime_error("unknown fill '" + text + "'");
}

ValidatedBy validated_by_from(const std::string& text) {
  for (ValidatedBy by : {ValidatedBy::none, ValidatedBy::gpu, ValidatedBy::emulator})
    if (name(by) == text) return by;
  throw std::runtime_error("unknown validator '" + text + "'");
}

}  // namespace

void to_json(nlohmann::json& j, const Shape& v) { j = to_string(v); }
void from_json(const nlohmann::json& j, Shape& v) { v = parse_shape(j.get<std::string>()); }

void to_json(nlohmann::json& j, const ValidationCase& v) {
  j = {{"fill", name(v.fill)},
       {"shape", v.shape},
       {"elements", v.elements},
       {"mismatches", v.mismatches},
       {"max_abs_error", number(v.max_abs_error)},
       {"max_error_over_bound", number(v.max_error_over_bound)},
       {"guards_intact", v.guards_intact},
       {"repeatable", v.repeatable},
       {"first_mismatch", v.first_mismatch}};
}
void from_json(const nlohmann::json& j, ValidationCase& v) {
  v.fill = fill_from(j.at("fill").get<std::string>());
  j.at("shape").get_to(v.shape);
  j.at("elements").get_to(v.elements);
  j.at("mismatches").get_to(v.mismatches);
  v.max_abs_error = number(j.at("max_abs_error"));
  v.max_error_over_bound = number(j.at("max_error_over_bound"));
  j.at("guards_intact").get_to(v.guards_intact);
  j.at("repeatable").get_to(v.repeatable);
  j.at("first_mismatch").get_to(v.first_mismatch);
}

void to_json(nlohmann::json& j, const Validation& v) { j = {{"by", name(v.by)}, {"cases", v.cases}}; }
void from_json(const nlohmann::json& j, Validation& v) {
  v.by = validated_by_from(j.at("by").get<std::string>());
  j.at("cases").get_to(v.cases);
}

void to_json(nlohmann::json& j, const Sample& v) {
  j = {{"time_us", v.time_us},
       {"launches", v.launches},
       {"round", v.round},
       {"final_round", v.final_round},
       {"sm_clock_khz", v.sm_clock_khz},
       {"power_mw", v.power_mw},
       {"temperature_c", v.temperature_c},
       {"event_reasons", v.event_reasons},
       {"mark", name(v.mark)}};
}
void from_json(const nlohmann::json& j, Sample& v) {
  j.at("time_us").get_to(v.time_us);
  j.at("launches").get_to(v.launches);
  j.at("round").get_to(v.round);
  j.at("final_round").get_to(v.final_round);
  j.at("sm_clock_khz").get_to(v.sm_clock_khz);
  j.at("power_mw").get_to(v.power_mw);
  j.at("temperature_c").get_to(v.temperature_c);
  j.at("event_reasons").get_to(v.event_reasons);
  v.mark = parse_sample_mark(j.at("mark").get<std::string>());
}

void to_json(nlohmann::json& j, const StaticEvidence& v) {
  j = {{"registers", v.registers},
       {"spill_store_bytes", v.spill_store_bytes},
       {"spill_load_bytes", v.spill_load_bytes},
       {"stack_bytes", v.stack_bytes},
       {"static_smem_bytes", v.static_smem_bytes},
       {"dynamic_smem_bytes", v.dynamic_smem_bytes},
       {"tmem_columns", v.tmem_columns},
       {"mma", v.counts.mma},
       {"tma_load", v.counts.tma_load},
       {"tma_store", v.counts.tma_store},
       {"commit", v.counts.commit},
       {"mbarrier_wait", v.counts.mbarrier_wait},
       {"tmem_load", v.counts.tmem_load},
       {"tmem_alloc", v.counts.tmem_alloc}};
}
void from_json(const nlohmann::json& j, StaticEvidence& v) {
  j.at("registers").get_to(v.registers);
  j.at("spill_store_bytes").get_to(v.spill_store_bytes);
  j.at("spill_load_bytes").get_to(v.spill_load_bytes);
  j.at("stack_bytes").get_to(v.stack_bytes);
  j.at("static_smem_bytes").get_to(v.static_smem_bytes);
  j.at("dynamic_smem_bytes").get_to(v.dynamic_smem_bytes);
  j.at("tmem_columns").get_to(v.tmem_columns);
  j.at("mma").get_to(v.counts.mma);
  j.at("tma_load").get_to(v.counts.tma_load);
  j.at("tma_store").get_to(v.counts.tma_store);
  j.at("commit").get_to(v.counts.commit);
  j.at("mbarrier_wait").get_to(v.counts.mbarrier_wait);
  j.at("tmem_load").get_to(v.counts.tmem_load);
  j.at("tmem_alloc").get_to(v.counts.tmem_alloc);
}

void to_json(nlohmann::json& j, const DeviceRecord& v) {
  j = {{"uuid", v.uuid},
       {"name", v.name},
       {"arch", v.arch},
       {"sm_count", v.sm_count},
       {"l2_bytes", v.l2_bytes},
       {"max_sm_clock_khz", v.max_sm_clock_khz},
       {"driver_version", v.driver_version}};
}
void from_json(const nlohmann::json& j, DeviceRecord& v) {
  j.at("uuid").get_to(v.uuid);
  j.at("name").get_to(v.name);
  j.at("arch").get_to(v.arch);
  j.at("sm_count").get_to(v.sm_count);
  j.at("l2_bytes").get_to(v.l2_bytes);
  j.at("max_sm_clock_khz").get_to(v.max_sm_clock_khz);
  j.at("driver_version").get_to(v.driver_version);
}

}  // namespace gemmtune
