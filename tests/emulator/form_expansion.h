// The concrete forms of a family, so that a test can execute each of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/forms.h"

namespace gemmtune::emulator {

/// Every accepted form that starts with `prefix`.
inline std::vector<std::string> forms_of(std::string_view prefix) {
  std::vector<std::string> out;
  for (const ParsedRule& rule : form_rules()) {
    if (rule.rule->pattern.substr(0, rule.rule->pattern.find_first_of(".[")) !=
        prefix.substr(0, prefix.find('.')))
      continue;
    for (std::string& form : expand_rule(rule))
      if (form.rfind(prefix, 0) == 0) out.push_back(std::move(form));
  }
  return out;
}

inline bool has_qualifier(std::string_view form, std::string_view qualifier) {
  for (size_t at = form.find('.'); at != std::string_view::npos;) {
    size_t end = form.find('.', at + 1);
    if (form.substr(at + 1, end == std::string_view::npos ? end : end - at - 1) == qualifier) return true;
    at = end;
  }
  return false;
}

/// "{p0, p1, ..}".
inline std::string register_list(std::string_view prefix, size_t count) {
  std::string out = "{";
  for (size_t i = 0; i < count; ++i) out += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return out + "}";
}

}  // namespace gemmtune::emulator
