// "Did you mean": the nearest known name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmtune {

/// The candidate within a third of the length in edits, or empty.
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace gemmtune
