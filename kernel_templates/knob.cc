#include "kernel_templates/knob.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gemm/error.h"
#include "gemm/suggest.h"

namespace gemmtune {

std::string value_text(const Knob& knob, int value) {
  if (knob.words.empty()) return std::to_string(value);
  auto found = std::ranges::find(knob.values, value);
  if (found == knob.values.end()) return std::to_string(value);
  return knob.words[static_cast<size_t>(found - knob.values.begin())];
}

int parse_value(const Knob& knob, std::string_view text) {
  std::vector<std::string> known;
  for (int value : knob.values) {
    known.push_back(value_text(knob, value));
    if (known.back() == text) return value;
  }
  throw UsageError(fmt::format("knob {} has no value '{}'{}: one of {}", knob.name, text,
                               did_you_mean(text, known), fmt::join(known, ", ")));
}

int knob_index(const std::vector<Knob>& knobs, std::string_view name) {
  std::vector<std::string> known;
  for (size_t i = 0; i < knobs.size(); ++i) {
    if (knobs[i].name == name) return static_cast<int>(i);
    known.push_back(knobs[i].name);
  }
  throw UsageError(
      fmt::format("unknown knob '{}'{}: one of {}", name, did_you_mean(name, known), fmt::join(known, ", ")));
}

namespace {

std::string join_knobs(const std::vector<Knob>& knobs, const Config& config, bool all) {
  std::string text;
  for (size_t i = 0; i < knobs.size(); ++i) {
    if (!all && config.values[i] == knobs[i].default_value) continue;
    if (!text.empty()) text += ',';
    text += knobs[i].name + "=" + value_text(knobs[i], config.values[i]);
  }
  return text;
}

}  // namespace

std::string to_text(const std::vector<Knob>& knobs, const Config& config) {
  return join_knobs(knobs, config, true);
}

std::string brief_text(const std::vector<Knob>& knobs, const Config& config) {
  std::string text = join_knobs(knobs, config, false);
  return text.empty() ? "default" : text;
}

Config parse_config(const std::vector<Knob>& knobs, std::string_view text) {
  Config config;
  for (const Knob& knob : knobs) config.values.push_back(knob.default_value);
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      throw UsageError(fmt::format("'{}': expected KNOB=VALUE, for example stages=4", item));
    int index = knob_index(knobs, item.substr(0, equals));
    config.values[static_cast<size_t>(index)] =
        parse_value(knobs[static_cast<size_t>(index)], item.substr(equals + 1));
  }
  return config;
}

}  // namespace gemmtune
