#include "gemm/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gemm/error.h"
#include "gemm/text_file.h"

namespace gemmtune {
namespace {

constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;

/// JSON files that lie beside a config.json, known by one of their keys.
struct Neighbour {
  std::string_view key, what;
};
constexpr std::array<Neighbour, 7> kNeighbours = {{
    {"quantization", "a quantisation description (hf_quant_config.json)"},
    {"weight_map", "an index of weights (model.safetensors.index.json)"},
    {"tokenizer_class", "a tokenizer configuration"},
    {"peft_type", "an adapter configuration"},
    {"max_new_tokens", "a generation configuration"},
    {"processor_class", "a preprocessor configuration"},
    {"n_kv_heads", "a params.json of the model's authors"},
}};

std::filesystem::path config_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  std::filesystem::path file = path / "config.json";
  if (!std::filesystem::exists(file, ignored))
    throw UsageError(
        fmt::format("{}: the folder has no config.json: name the model's folder or its config.json",
                    printable(path.string(), 200)));
  return file;
}

nlohmann::json parse(const std::string& text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    // The library's own message quotes the text, line breaks included; the position is what helps.
    auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    throw UsageError(fmt::format("{}:{}: not JSON: give the model's config.json", file,
                                 1 + std::count(text.begin(), end, '\n')));
  }
}

std::string printable_json(const nlohmann::json& value) { return printable(value.dump()); }

}  // namespace

ModelConfig::ModelConfig(const std::filesystem::path& path) {
  std::filesystem::path file = config_file(path);
  file_ = printable(file.string(), 200);
  root_ = parse(read_text_file(file, "config.json"), file_);
  scope_ = &root_;
  if (!root_.is_object()) refuse("not a model configuration: expected a JSON object with model_type");
  if (has("model_type")) return;
  for (const Neighbour& neighbour : kNeighbours)
    if (has(neighbour.key))
      refuse(fmt::format("has no model_type: this is {}; give the model's config.json", neighbour.what));
  refuse("has no model_type: not a model configuration; give the model's config.json");
}

void ModelConfig::enter(std::string_view key) {
  const nlohmann::json* object = find(key);
  if (!object || !object->is_object()) refuse(fmt::format("has no object {}", key));
  scope_ = object;
  prefix_ = fmt::format("{}.", key);
}

void ModelConfig::use_class_defaults(std::string_view class_name, std::span<const ClassDefault> defaults) {
  class_name_ = class_name;
  defaults_.assign(defaults.begin(), defaults.end());
}

bool ModelConfig::has(std::string_view key) const {
  const nlohmann::json* value = find(key);
  return value && !value->is_null();
}

bool ModelConfig::is_set(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (!value || value->is_null() || *value == false || *value == "") return false;
  return value->is_number() ? *value != 0 : !value->empty();
}

int64_t ModelConfig::size(const KeyNames& names, int64_t least) {
  if (std::optional<int64_t> value = agreed(names, least)) return *value;
  if (!any_present(names))
    if (std::optional<int64_t> value = class_default(names)) return *value;
  refuse_missing(names);
}

std::optional<int64_t> ModelConfig::size_or_null(std::string_view key) {
  if (std::optional<int64_t> value = agreed({key}, 0)) return value;
  if (!any_present({key})) {
    if (std::optional<int64_t> value = class_default({key})) return value;
    refuse_missing({key});
  }
  note_read(key, nullptr);
  return std::nullopt;
}

int64_t ModelConfig::size_or(const KeyNames& names, int64_t fallback, std::string_view why) {
  if (std::optional<int64_t> value = agreed(names, 1)) return *value;
  if (!any_present(names))
    if (std::optional<int64_t> value = class_default(names)) return *value;
  keys_defaulted_.push_back(fmt::format("{}{} = {} ({})", prefix_, names.front(), fallback, why));
  return fallback;
}

bool ModelConfig::flag(std::string_view key, bool class_default) {
  const nlohmann::json* value = find(key);
  if (!value || value->is_null()) {
    keys_defaulted_.push_back(fmt::format("{}{} = {} (class default)", prefix_, key, class_default));
    return class_default;
  }
  if (!value->is_boolean())
    refuse(fmt::format("{}{} is {}: expected true or false", prefix_, key, printable_json(*value)));
  note_read(key, *value);
  return value->get<bool>();
}

std::vector<std::string> ModelConfig::texts(std::string_view key) {
  if (!has(key)) return {};
  const nlohmann::json& value = *find(key);
  std::vector<std::string> result;
  for (const nlohmann::json& item : value.is_array() ? value : nlohmann::json::array({value})) {
    if (!item.is_string())
      refuse(fmt::format("{}{} is {}: expected text", prefix_, key, printable_json(value)));
    result.push_back(item.get<std::string>());
  }
  note_read(key, value);
  return result;
}

std::vector<int64_t> ModelConfig::numbers(std::string_view key) {
  if (!has(key)) return {};
  const nlohmann::json& value = *find(key);
  if (!value.is_array())
    refuse(fmt::format("{}{} is {}: expected a list of whole numbers", prefix_, key, printable_json(value)));
  std::vector<int64_t> result;
  for (const nlohmann::json& item : value) result.push_back(whole_number(key, item, 0));
  note_read(key, value);
  return result;
}

void ModelConfig::refuse(std::string_view message) const {
  throw UsageError(fmt::format("{}: {}", file_, message));
}

const nlohmann::json* ModelConfig::find(std::string_view key) const {
  auto found = scope_->find(key);
  return found == scope_->end() ? nullptr : &*found;
}

int64_t ModelConfig::whole_number(std::string_view key, const nlohmann::json& value, int64_t least) const {
  bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(kMaxSize)
                                         : value.is_number_integer();
  int64_t number = fits ? value.get<int64_t>() : -1;
  if (!fits || number < least || number > kMaxSize)
    refuse(fmt::format("{}{} is {}: expected a whole number from {} to {}", prefix_, key,
                       printable_json(value), least, kMaxSize));
  return number;
}

std::optional<int64_t> ModelConfig::agreed(const KeyNames& names, int64_t least) {
  std::optional<int64_t> result;
  std::string_view first;
  for (std::string_view name : names) {
    if (!has(name)) continue;
    int64_t value = whole_number(name, *find(name), least);
    if (result && *result != value)
      refuse(fmt::format("{0}{1} {2} and {0}{3} {4} disagree: correct one", prefix_, first, *result, name,
                         value));
    result = value;
    first = name;
    note_read(name, value);
  }
  return result;
}

std::optional<int64_t> ModelConfig::class_default(const KeyNames& names) {
  if (prefix_.empty() && !names.empty()) {
    // At the top level a class default is known to exist but was left out by hand: naming it would be
    // guessing.
    for (const ClassDefault& known : defaults_)
      if (std::ranges::find(names, known.key) != names.end()) refuse_missing(names);
    return std::nullopt;
  }
  for (const ClassDefault& known : defaults_) {
    if (std::ranges::find(names, known.key) == names.end()) continue;
    keys_defaulted_.push_back(
        fmt::format("{}{} = {} (class default of {})", prefix_, known.key, known.value, class_name_));
    class_defaults_used_.push_back(fmt::format("{} {}", known.key, known.value));
    return known.value;
  }
  return std::nullopt;
}

bool ModelConfig::any_present(const KeyNames& names) const {
  return std::ranges::any_of(names, [&](std::string_view name) { return find(name) != nullptr; });
}

void ModelConfig::note_read(std::string_view key, const nlohmann::json& value) {
  if (read_.insert(prefix_ + std::string(key)).second)
    keys_read_.push_back(fmt::format("{}{} = {}", prefix_, key, printable_json(value)));
}

void ModelConfig::refuse_missing(const KeyNames& names) const {
  refuse(fmt::format("{}{} is missing: the shapes cannot be derived without it", prefix_, names.front()));
}

}  // namespace gemmtune
