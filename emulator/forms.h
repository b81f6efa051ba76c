// Every instruction form that the PTX front end accepts, as a table. A decoder may know more qualifiers than
// it can combine; what the table does not list is refused, so the table is the accepted set and can be
// enumerated.
//
// A rule is a pattern: an opcode and slots.
//   .sync            this qualifier
//   .{rn,rz}         one of these; an alternative may be several qualifiers: .{acquire.cta,acquire.gpu}
//   [.sat]           this one or nothing, [.{and,or}] one of these or nothing
// The order of qualifiers is the programmer's, as for ptxas; only types must come in the pattern's order
// (cvt.to.from).
//
// Rows are what tests are counted against (tests/emulator/form_coverage.cc):
//   complete     one row for each concrete form: the asynchronous and matrix families, where a combination is
//   an
//                instruction of its own.
//   each_choice  one row for each alternative of each slot: ld, cvt, set, atom and the like, whose slots act
//                independently and whose full products run into the thousands.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmtune::emulator {

enum class FormRows : uint8_t { each_choice, complete };
enum class FormTarget : uint8_t { any, hopper, blackwell };

struct FormRule {
  std::string_view pattern;
  FormRows rows = FormRows::each_choice;
  FormTarget target = FormTarget::any;  ///< what ptxas takes it for
};

/// One qualifier position. Each alternative holds its words; an empty one means "left out".
struct FormSlot {
  std::vector<std::vector<std::string_view>> alternatives;
};

struct ParsedRule {
  const FormRule* rule = nullptr;
  std::string_view opcode;
  std::vector<FormSlot> slots;
  std::string label;  ///< opcode and fixed words, types abbreviated: "setp.{s16..}"
};

/// All rules, in the order of the tables below.
const std::vector<ParsedRule>& form_rules();

/// The rule that accepts an instruction and the alternative taken in each slot.
struct FormMatch {
  const ParsedRule* rule = nullptr;
  std::vector<size_t> choice;
};
std::optional<FormMatch> match_form(std::string_view opcode, std::span<const std::string_view> qualifiers);

/// Names of all rows, and of those that a form ("ld.global.v2.u32") covers; empty if no rule accepts it.
std::vector<std::string> form_rows();
std::vector<std::string> rows_covered(std::string_view form);
/// Every concrete form of one rule.
std::vector<std::string> expand_rule(const ParsedRule& rule);

// One table a class of instructions.
std::span<const FormRule> integer_forms();
std::span<const FormRule> float_forms();
std::span<const FormRule> convert_forms();
std::span<const FormRule> control_forms();
std::span<const FormRule> memory_forms();
std::span<const FormRule> barrier_forms();
std::span<const FormRule> bulk_copy_forms();
std::span<const FormRule> matrix_forms();
std::span<const FormRule> tcgen05_forms();

}  // namespace gemmtune::emulator
