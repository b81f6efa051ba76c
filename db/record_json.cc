#include "db/record_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "gemm/error.h"

namespace gemmtune {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Fill parse_fill(const std::string& text) {
  for (Fill fill : {Fill::sharp, Fill::rounding, Fill::normal})
    if (name(fill) == text) return fill;
  throw EnvironmentError(fmt::format("validation evidence names an unknown fill '{}'", text));
}

/// Text from kernels and compilers may hold any byte.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string validation_to_json(const std::vector<ValidationCase>& cases) {
  Json array = Json::array();
  for (const ValidationCase& c : cases)
    array.push_back({{"fill", name(c.fill)},
                     {"shape", to_string(c.shape)},
                     {"elements", c.elements},
                     {"mismatches", c.mismatches},
                     {"max_abs_error", number(c.max_abs_error)},
                     {"max_error_over_bound", number(c.max_error_over_bound)},
                     {"guards_intact", c.guards_intact},
                     {"repeatable", c.repeatable},
                     {"first_mismatch", c.first_mismatch}});
  return dump(array);
}

std::vector<ValidationCase> validation_from_json(std::string_view text) {
  std::vector<ValidationCase> cases;
  try {
    for (const Json& json : Json::parse(text)) {
      ValidationCase c;
      c.fill = parse_fill(json.at("fill"));
      c.shape = parse_shape(json.at("shape").get<std::string>());
      c.elements = json.at("elements");
      c.mismatches = json.at("mismatches");
      c.max_abs_error = number(json.at("max_abs_error"));
      c.max_error_over_bound = number(json.at("max_error_over_bound"));
      c.guards_intact = json.at("guards_intact");
      c.repeatable = json.at("repeatable");
      c.first_mismatch = json.at("first_mismatch");
      cases.push_back(std::move(c));
    }
  } catch (const Json::exception& e) {
    throw EnvironmentError(fmt::format("validation evidence in the database is damaged: {}", e.what()));
  }
  return cases;
}

std::vector<std::pair<std::string, std::string>> config_items(std::string_view config) {
  std::vector<std::pair<std::string, std::string>> items;
  while (!config.empty()) {
    size_t comma = config.find(',');
    std::string_view item = config.substr(0, comma);
    config = comma == std::string_view::npos ? std::string_view() : config.substr(comma + 1);
    size_t equals = item.find('=');
    items.emplace_back(item.substr(0, equals),
                       equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1));
  }
  return items;
}

std::string config_to_json(std::string_view config) {
  Json object = Json::object();
  for (const auto& [knob, value] : config_items(config)) {
    int64_t parsed = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    bool numeric = error == std::errc() && end == value.data() + value.size();
    object[knob] = numeric ? Json(parsed) : Json(value);
  }
  return dump(object);
}

}  // namespace gemmtune
