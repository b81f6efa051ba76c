#include "emulator/ptx_variable.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace gemmtune::emulator {
namespace {

constexpr uint64_t kMaxVariableBytes = 1 << 28;  ///< of a module's static variables together
constexpr int kMaxNesting = 64;                  ///< of braces in initial values

std::optional<StateSpace> space_of(std::string_view directive) {
  if (directive == "global") return StateSpace::global;
  if (directive == "const") return StateSpace::constant;
  if (directive == "shared") return StateSpace::shared;
  if (directive == "local") return StateSpace::local;
  if (directive == "param") return StateSpace::param;
  return std::nullopt;
}

uint64_t element_bytes(const Variable& v) { return static_cast<uint64_t>(size_bytes(v.type)); }

}  // namespace

void VariableParser::list(bool is_extern, const std::function<void(std::string_view, Variable)>& add) {
  Prefix shared = prefix(is_extern);
  do {
    std::string_view name = cursor_.word();
    add(name, declarator(shared, name));
  } while (cursor_.accept(","));
  cursor_.expect(";");
}

std::vector<Variable> VariableParser::parameters() {
  std::vector<Variable> parameters;
  cursor_.expect("(");
  if (cursor_.accept(")")) return parameters;
  do {
    if (cursor_.is_directive("reg")) cursor_.fail("register parameters are not supported");
    Prefix own = prefix(false);
    parameters.push_back(declarator(own, cursor_.word()));
  } while (cursor_.accept(","));
  cursor_.expect(")");
  return parameters;
}

VariableParser::Prefix VariableParser::prefix(bool is_extern) {
  Prefix prefix;
  Variable& v = prefix.variable;
  v.line = cursor_.peek().line;
  v.is_extern = is_extern;
  bool typed = false;
  while (cursor_.at_directive()) {
    std::string_view d = cursor_.take().text;
    if (auto space = space_of(d)) {
      if (v.space == StateSpace::none) v.space = *space;
    } else if (d == "align") {
      uint64_t align = cursor_.integer();
      if (align == 0 || align > 4096 || (align & (align - 1))) cursor_.fail("bad alignment");
      v.align = static_cast<int>(align);
    } else if (d == "ptr") {
      skip_pointee();
    } else if (d == "v2" || d == "v4" || d == "v8") {
      prefix.vector_length = static_cast<uint64_t>(d[1] - '0');
    } else if (d == "attribute") {
      cursor_.skip_parentheses();
    } else if (auto type = parse_scalar_type(d)) {
      v.type = *type;
      typed = true;
    } else {
      cursor_.fail("unexpected '." + std::string(d) + "' in a declaration");
    }
  }
  if (!typed || v.space == StateSpace::none) cursor_.fail("incomplete declaration");
  return prefix;
}

/// ".param .u64 .ptr .global .align 16 name": describes what the pointer points to, not the parameter.
void VariableParser::skip_pointee() {
  while (cursor_.at_directive()) {
    std::string_view what = cursor_.take().text;
    if (what == "align")
      cursor_.integer();
    else if (!space_of(what))
      cursor_.fail("unexpected '." + std::string(what) + "' behind .ptr");
  }
}

Variable VariableParser::declarator(const Prefix& prefix, std::string_view name) {
  Variable v = prefix.variable;
  v.name = name;
  uint64_t count = prefix.vector_length;
  bool array = false;
  while (cursor_.accept("[")) {
    array = true;
    if (cursor_.accept("]")) {
      v.unsized = true;
      continue;
    }
    uint64_t n = cursor_.integer();
    if (n > kMaxVariableBytes || count * n > kMaxVariableBytes)
      cursor_.fail("variable '" + v.name + "' is too large");
    count *= n;
    cursor_.expect("]");
  }
  v.bytes = v.unsized ? 0 : count * element_bytes(v);
  v.align = std::max(v.align, static_cast<int>(element_bytes(v)));
  if (cursor_.accept("=")) initializer(v, array);
  if (v.space == StateSpace::global || v.space == StateSpace::constant) {
    total_bytes_ += v.bytes;
    if (total_bytes_ > kMaxVariableBytes) cursor_.fail("variables are too large in all");
  }
  return v;
}

void VariableParser::initializer(Variable& v, bool array) {
  if (array)
    initial_list(v, 0);
  else
    initial_value(v);
  if (v.unsized) {
    v.unsized = false;
    v.bytes = v.init.size();
  }
  if (v.init.size() > v.bytes) cursor_.fail("too many initial values for '" + v.name + "'");
}

void VariableParser::initial_list(Variable& v, int depth) {
  if (depth > kMaxNesting) cursor_.fail("initial values are nested too deeply");
  cursor_.expect("{");
  while (!cursor_.accept("}")) {
    if (cursor_.is("{"))
      initial_list(v, depth + 1);
    else
      initial_value(v);
    if (!cursor_.is("}")) cursor_.expect(",");
  }
}

void VariableParser::initial_value(Variable& v) {
  size_t at = v.init.size();
  v.init.resize(at + element_bytes(v));
  if (cursor_.peek().kind == TokenKind::word) {
    initial_address(v, at);
    return;
  }
  uint64_t bits = initial_bits(v.type);
  std::memcpy(v.init.data() + at, &bits, std::min<size_t>(element_bytes(v), 8));
}

/// "symbol", "symbol+8", "generic(symbol)+8".
void VariableParser::initial_address(Variable& v, size_t at) {
  std::string_view name = cursor_.take().text;
  bool generic = false;
  if (name == "generic" && cursor_.accept("(")) {
    generic = true;
    name = cursor_.word();
    cursor_.expect(")");
  } else if (name == "mask" || name == "generic") {
    cursor_.fail("initial value '" + std::string(name) + "(...)' is not supported");
  }
  v.relocations.push_back(
      {at, std::string(name), cursor_.offset(), static_cast<int>(element_bytes(v)), generic});
}

uint64_t VariableParser::initial_bits(ScalarType type) {
  PtxNumber number = cursor_.number("bad initial value ");
  if (number.kind != PtxNumber::Kind::f64 || type != ScalarType::f32) return number.bits;
  return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
}

}  // namespace gemmtune::emulator
