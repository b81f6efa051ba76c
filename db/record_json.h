// The parts of a record that are stored as JSON text: validation evidence and a config's knob values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "search/trial.h"

namespace gemmtune {

/// Array of cases. Infinite and NaN errors (a wrong kernel has them) travel as strings: JSON has no such
/// numbers.
std::string validation_to_json(const std::vector<ValidationCase>& cases);
std::vector<ValidationCase> validation_from_json(std::string_view text);

/// "stages=4,swizzle_a=128B" as pairs, in order. An item without '=' has an empty value.
std::vector<std::pair<std::string, std::string>> config_items(std::string_view config);
/// {"stages":4,"swizzle_a":"128B"}: numbers where they are numbers.
std::string config_to_json(std::string_view config);

}  // namespace gemmtune
