// Patterns to slots, matching, and rows.
#include "emulator/forms.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "emulator/scalar_type.h"

namespace gemmtune::emulator {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool all_types(const FormSlot& slot) {
  return std::all_of(slot.alternatives.begin(), slot.alternatives.end(), [](const auto& words) {
    return !words.empty() && std::all_of(words.begin(), words.end(),
                                         [](std::string_view w) { return parse_scalar_type(w).has_value(); });
  });
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::string_view w : words) (out += '.') += w;
  return out;
}

/// ".word", ".{a,b}" from `text` on; moves `text` behind it.
FormSlot parse_slot(std::string_view& text) {
  if (text.size() < 2 || text[0] != '.') throw std::logic_error("bad form pattern at " + std::string(text));
  FormSlot slot;
  if (text[1] == '{') {
    size_t end = text.find('}');
    for (std::string_view alternative : split(text.substr(2, end - 2), ','))
      slot.alternatives.push_back(split(alternative, '.'));
    text.remove_prefix(end + 1);
  } else {
    size_t end = std::min(text.find_first_of(".[]", 1), text.size());
    slot.alternatives.push_back({text.substr(1, end - 1)});
    text.remove_prefix(end);
  }
  return slot;
}

ParsedRule parse_rule(const FormRule& rule) {
  ParsedRule out;
  out.rule = &rule;
  std::string_view text = rule.pattern;
  out.opcode = text.substr(0, text.find_first_of(".["));
  text.remove_prefix(out.opcode.size());
  while (!text.empty()) {
    bool optional = text[0] == '[';
    if (optional) text.remove_prefix(1);
    FormSlot slot = parse_slot(text);
    while (optional && text[0] == '.') {  // "[.xorsign.abs]": both or none
      FormSlot more = parse_slot(text);
      slot.alternatives[0].push_back(more.alternatives[0][0]);
    }
    if (optional) {
      text.remove_prefix(1);
      slot.alternatives.emplace_back();
    }
    out.slots.push_back(std::move(slot));
  }
  out.label = out.opcode;
  for (const FormSlot& slot : out.slots)
    if (slot.alternatives.size() == 1)
      out.label += joined(slot.alternatives[0]);
    else if (all_types(slot))
      out.label += ".{" + joined(slot.alternatives[0]).substr(1) + "..}";
  return out;
}

/// Takes `words` out of `rest`; a type must be the first type that is left.
bool take(const std::vector<std::string_view>& words, std::vector<std::string_view>& rest) {
  for (std::string_view word : words) {
    auto it = parse_scalar_type(word)
                  ? std::find_if(rest.begin(), rest.end(),
                                 [](std::string_view w) { return parse_scalar_type(w).has_value(); })
                  : std::find(rest.begin(), rest.end(), word);
    if (it == rest.end() || *it != word) return false;
    rest.erase(it);
  }
  return true;
}

bool match_slots(const ParsedRule& rule, size_t slot, const std::vector<std::string_view>& rest,
                 std::vector<size_t>& choice) {
  if (slot == rule.slots.size()) return rest.empty();
  const auto& alternatives = rule.slots[slot].alternatives;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    std::vector<std::string_view> left = rest;
    if (!take(alternatives[i], left)) continue;
    choice.push_back(i);
    if (match_slots(rule, slot + 1, left, choice)) return true;
    choice.pop_back();
  }
  return false;
}

std::string concrete(const ParsedRule& rule, const std::vector<size_t>& choice) {
  std::string out(rule.opcode);
  for (size_t i = 0; i < choice.size(); ++i) out += joined(rule.slots[i].alternatives[choice[i]]);
  return out;
}

/// "ld with .v2", "ld without .v2"; a rule without a choice is one row.
std::string choice_row(const ParsedRule& rule, size_t slot, size_t alternative) {
  const auto& alternatives = rule.slots[slot].alternatives;
  if (!alternatives[alternative].empty()) return rule.label + " with " + joined(alternatives[alternative]);
  std::string first = joined(alternatives[0]);
  return rule.label + " without " + first + (alternatives.size() > 2 ? " .." : "");
}

std::vector<std::string> rows_of(const ParsedRule& rule, const std::vector<size_t>& choice) {
  if (rule.rule->rows == FormRows::complete) return {concrete(rule, choice)};
  std::vector<std::string> rows;
  for (size_t i = 0; i < choice.size(); ++i)
    if (rule.slots[i].alternatives.size() > 1) rows.push_back(choice_row(rule, i, choice[i]));
  if (rows.empty()) rows.push_back(rule.label);
  return rows;
}

template <class F>
void for_each_choice(const ParsedRule& rule, F body) {
  std::vector<size_t> choice(rule.slots.size(), 0);
  for (;;) {
    body(choice);
    size_t i = choice.size();
    while (i > 0 && ++choice[i - 1] == rule.slots[i - 1].alternatives.size()) choice[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace

const std::vector<ParsedRule>& form_rules() {
  static const std::vector<ParsedRule> rules = [] {
    std::vector<ParsedRule> out;
    for (auto table : {integer_forms(), float_forms(), convert_forms(), control_forms(), memory_forms(),
                       barrier_forms(), bulk_copy_forms(), matrix_forms(), tcgen05_forms()})
      for (const FormRule& rule : table) out.push_back(parse_rule(rule));
    return out;
  }();
  return rules;
}

std::optional<FormMatch> match_form(std::string_view opcode, std::span<const std::string_view> qualifiers) {
  static const std::multimap<std::string_view, const ParsedRule*> by_opcode = [] {
    std::multimap<std::string_view, const ParsedRule*> out;
    for (const ParsedRule& rule : form_rules()) out.emplace(rule.opcode, &rule);
    return out;
  }();
  std::vector<std::string_view> words(qualifiers.begin(), qualifiers.end());
  auto [first, last] = by_opcode.equal_range(opcode);
  for (auto it = first; it != last; ++it) {
    FormMatch match{it->second, {}};
    if (match_slots(*match.rule, 0, words, match.choice)) return match;
  }
  return std::nullopt;
}

std::vector<std::string> form_rows() {
  std::vector<std::string> rows;
  std::set<std::string> seen;
  auto add = [&](std::string row) {
    if (seen.insert(row).second) rows.push_back(std::move(row));
  };
  for (const ParsedRule& rule : form_rules()) {
    if (rule.rule->rows == FormRows::complete) {
      for (std::string& form : expand_rule(rule)) add(std::move(form));
      continue;
    }
    size_t before = rows.size();
    bool choices = false;
    for (size_t i = 0; i < rule.slots.size(); ++i)
      for (size_t a = 0; rule.slots[i].alternatives.size() > 1 && a < rule.slots[i].alternatives.size();
           ++a) {
        add(choice_row(rule, i, a));
        choices = true;
      }
    if (!choices && rows.size() == before) add(rule.label);
  }
  return rows;
}

std::vector<std::string> rows_covered(std::string_view form) {
  std::vector<std::string_view> words = split(form, '.');
  auto match = match_form(words[0], std::span(words).subspan(1));
  return match ? rows_of(*match->rule, match->choice) : std::vector<std::string>{};
}

std::vector<std::string> expand_rule(const ParsedRule& rule) {
  std::vector<std::string> forms;
  for_each_choice(rule, [&](const std::vector<size_t>& choice) { forms.push_back(concrete(rule, choice)); });
  return forms;
}

}  // namespace gemmtune::emulator
