// Tunable parameters and their values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gemmtune {

/// One tunable parameter, declared once: rendering, --set, help, storage and export derive from this.
struct Knob {
  std::string name;
  std::vector<int> values;  ///< in order of preference for listings, smallest first
  int default_value;
  std::string meaning;             ///< one line, for --help and docs
  std::vector<std::string> words;  ///< spelling of each value where numbers say nothing; else empty
  bool compiled = true;  ///< false: a launch parameter, configs that differ only here share a kernel
};

/// "128B", "static", or the number.
std::string value_text(const Knob& knob, int value);
/// Throws UsageError: "knob swizzle has no value '129B' (did you mean '128B'?): one of none, 32B, 64B, 128B".
int parse_value(const Knob& knob, std::string_view text);

/// One value per knob of a family, in the family's declaration order. Compared by content.
struct Config {
  std::vector<int> values;
  auto operator<=>(const Config&) const = default;
};

/// Index of a knob. Throws UsageError with a suggestion.
int knob_index(const std::vector<Knob>& knobs, std::string_view name);
/// "stages=4,tile_k=64,...": canonical, every knob.
std::string to_text(const std::vector<Knob>& knobs, const Config& config);
/// As to_text, but only the knobs that differ from their default ("default" if none do).
std::string brief_text(const std::vector<Knob>& knobs, const Config& config);
/// Knobs that the text does not name take their defaults, so rows older than a knob stay readable. Throws
/// UsageError.
Config parse_config(const std::vector<Knob>& knobs, std::string_view text);

}  // namespace gemmtune
