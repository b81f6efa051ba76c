#include "db/record_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "gemm/error.h"
#include "search/trial_json.h"

namespace gemmtune {
namespace {

/// Text from kernels and compilers may hold any byte.
template <class Json>
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string validation_to_json(const std::vector<ValidationCase>& cases) {
  return dump(nlohmann::json(cases));
}

std::vector<ValidationCase> validation_from_json(std::string_view text) {
  try {
    return nlohmann::json::parse(text).get<std::vector<ValidationCase>>();
  } catch (const std::exception& e) {
    throw EnvironmentError(fmt::format("validation evidence in the database is damaged: {}", e.what()));
  }
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
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [knob, value] : config_items(config)) {
    int64_t parsed = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    bool numeric = error == std::errc() && end == value.data() + value.size();
    if (numeric) {
      object[knob] = parsed;
    } else {
      object[knob] = value;
    }
  }
  return dump(object);
}

}  // namespace gemmtune
