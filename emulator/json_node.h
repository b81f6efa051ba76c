// Reading JSON with messages that name the place: "launch.json.buffers.a.type: unknown 'f17' (did you mean
// 'f16'?)".
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gemm/error.h"
#include "gemm/suggest.h"
#include "gemm/text_file.h"

namespace gemmtune::emulator {

using Json = nlohmann::ordered_json;

/// A value with the path that led to it. Every reader throws UsageError if the value is of another kind.
class JsonNode {
 public:
  JsonNode(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw UsageError(fmt::format("{}: {}", path_, why));
  }
  const Json& json() const { return *json_; }

  JsonNode at(const std::string& key) const { return {json_->at(key), path_ + "." + printable(key)}; }
  JsonNode at(size_t index) const { return {json_->at(index), fmt::format("{}[{}]", path_, index)}; }
  bool has(const char* key) const { return json_->is_object() && json_->contains(key); }

  void need_object(std::initializer_list<const char*> keys) const {
    if (!json_->is_object()) fail("expected an object");
    std::vector<std::string> known(keys.begin(), keys.end());
    if (known.empty()) return;
    for (const auto& [key, value] : json_->items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(fmt::format("unknown key '{}'{}", printable(key), did_you_mean(key, known)));
  }
  void need_array() const {
    if (!json_->is_array()) fail("expected a list");
  }

  std::string text() const {
    if (!json_->is_string()) fail("expected text");
    return json_->get<std::string>();
  }
  double number() const {
    if (!json_->is_number()) fail("expected a number");
    return json_->get<double>();
  }
  int64_t integer(int64_t low, int64_t high) const {
    if (!json_->is_number_integer() || (json_->is_number_unsigned() && json_->get<uint64_t>() > INT64_MAX))
      fail("expected an integer");
    int64_t value = json_->get<int64_t>();
    if (value < low || value > high) fail(fmt::format("{} is not {} to {}", value, low, high));
    return value;
  }
  bool boolean() const {
    if (!json_->is_boolean()) fail("expected true or false");
    return json_->get<bool>();
  }
  /// Index of the text among the names.
  size_t one_of(const std::vector<std::string>& names) const {
    std::string word = text();
    auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      fail(fmt::format("unknown '{}'{}: one of {}", printable(word), did_you_mean(word, names),
                       fmt::join(names, ", ")));
    return static_cast<size_t>(found - names.begin());
  }
  std::vector<double> numbers() const {
    need_array();
    std::vector<double> values;
    for (size_t i = 0; i < json_->size(); ++i) values.push_back(at(i).number());
    if (values.empty()) fail("the list is empty");
    return values;
  }

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace gemmtune::emulator
