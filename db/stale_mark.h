// A stored winner whose time was found to be another one (gemmtune verify) says so at the start of its
// evidence line, until it is verified again or chosen anew.
#pragma once

#include <string>
#include <string_view>

#include "search/trial.h"

namespace gemmtune {

inline constexpr std::string_view kStale = "stale: ";
bool is_stale(const Winner& winner);
/// The evidence line without that.
std::string without_stale(const std::string& evidence);

}  // namespace gemmtune
