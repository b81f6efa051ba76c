// Reading keys from a Hugging Face config.json, and remembering which were read and which came from
// elsewhere: a shape list is only worth as much as the keys behind it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmtune {

/// What transformers' configuration class assumes for a key that a file leaves out.
struct ClassDefault {
  std::string_view key;
  int64_t value;
};

/// Names of one key, newest first; a file may carry several, which then must agree.
using KeyNames = std::vector<std::string_view>;

/// One configuration. Every error is a UsageError that names the file and the key.
class ModelConfig {
 public:
  /// A config.json, or the folder that holds one. Refuses what is JSON but no model configuration.
  explicit ModelConfig(const std::filesystem::path& path);
  ModelConfig(const ModelConfig&) = delete;
  ModelConfig& operator=(const ModelConfig&) = delete;

  /// From here on keys are read from the object under `key`. transformers writes nested objects without the
  /// keys that equal the class default, so only there do defaults apply; at the top level a missing size is
  /// an error.
  void enter(std::string_view key);
  void use_class_defaults(std::string_view class_name, std::span<const ClassDefault> defaults);

  /// Present and not null.
  bool has(std::string_view key) const;
  /// Present with anything but null, false, 0 or an empty value.
  bool is_set(std::string_view key) const;
  bool was_read(std::string_view key) const { return read_.contains(prefix_ + std::string(key)); }

  /// A required size of at least `least`.
  int64_t size(const KeyNames& names, int64_t least = 1);
  /// Present and null: nothing. Absent: the class default, else an error, as null and absent differ for this
  /// key.
  std::optional<int64_t> size_or_null(std::string_view key);
  /// Absent without a class default, or null: `fallback`, noted with `why`.
  int64_t size_or(const KeyNames& names, int64_t fallback, std::string_view why);
  bool flag(std::string_view key, bool class_default);
  /// A string or list of strings; empty where the key is absent.
  std::vector<std::string> texts(std::string_view key);
  /// A list of whole numbers; empty where the key is absent or null.
  std::vector<int64_t> numbers(std::string_view key);

  [[noreturn]] void refuse(std::string_view message) const;

  const std::vector<std::string>& keys_read() const { return keys_read_; }  ///< "hidden_size = 4096"
  const std::vector<std::string>& keys_defaulted() const { return keys_defaulted_; }  ///< with the reason
  /// "hidden_size 4096" for each class default that was used.
  const std::vector<std::string>& class_defaults_used() const { return class_defaults_used_; }

 private:
  const nlohmann::json* find(std::string_view key) const;
  int64_t whole_number(std::string_view key, const nlohmann::json& value, int64_t least) const;
  /// The value of the names that the file has; nullopt where it has none or `null_counts` and null.
  std::optional<int64_t> agreed(const KeyNames& names, int64_t least);
  std::optional<int64_t> class_default(const KeyNames& names);
  bool any_present(const KeyNames& names) const;
  void note_read(std::string_view key, const nlohmann::json& value);
  [[noreturn]] void refuse_missing(const KeyNames& names) const;

  std::string file_;
  nlohmann::json root_;
  const nlohmann::json* scope_ = nullptr;
  std::string prefix_;
  std::string class_name_;
  std::vector<ClassDefault> defaults_;
  std::set<std::string> read_;
  std::vector<std::string> keys_read_, keys_defaulted_, class_defaults_used_;
};

}  // namespace gemmtune
