// One configuration of a family as the parameter of a test.
#pragma once

#include <ostream>

namespace gemmtune {

struct FamilyCase {
  const char* arch;
  const char* config;  ///< knobs off their default
};

inline void PrintTo(const FamilyCase& c, std::ostream* out) { *out << c.arch << " " << c.config; }

}  // namespace gemmtune
