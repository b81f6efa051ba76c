#include "emulator/decode.h"

#include <algorithm>
#include <cstring>

#include "emulator/address_space.h"
#include "emulator/special_register.h"

namespace gemmtune::emulator {
namespace {

int register_bytes(ScalarType type) {
  if (type == ScalarType::pred) return 0;
  int bytes = size_bytes(type);
  return bytes <= 4 ? 4 : bytes;
}

}  // namespace

// --- Decode: qualifiers ---

Decode::Decode(ModuleBuilder& m, const ParsedFunction& f, const ParsedInstr& parsed, Instr& instr)
    : out(instr), module(m), function(f), parsed_(parsed), qualifiers_(parsed.qualifiers) {}

void Decode::fail(const std::string& message) const {
  throw PtxError(parsed_.line, message + " in '" + parsed_.text + "'");
}

bool Decode::has(std::string_view q) const {
  return std::find(qualifiers_.begin(), qualifiers_.end(), q) != qualifiers_.end();
}

bool Decode::take(std::string_view q) {
  auto it = std::find(qualifiers_.begin(), qualifiers_.end(), q);
  if (it == qualifiers_.end()) return false;
  qualifiers_.erase(it);
  return true;
}

int Decode::take_one_of(std::initializer_list<std::string_view> list) {
  int found = -1, index = 0;
  for (std::string_view q : list) {
    if (has(q)) {
      if (found >= 0) fail("contradicting qualifiers");
      take(q);
      found = index;
    }
    ++index;
  }
  return found;
}

int Decode::need_one_of(std::initializer_list<std::string_view> list) {
  int found = take_one_of(list);
  if (found < 0) {
    std::string names;
    for (std::string_view q : list) {
      names += names.empty() ? "." : ", .";
      names += q;
    }
    fail("missing qualifier (one of " + names + ")");
  }
  return found;
}

std::optional<ScalarType> Decode::take_type() {
  for (auto it = qualifiers_.begin(); it != qualifiers_.end(); ++it)
    if (auto type = parse_scalar_type(*it)) {
      qualifiers_.erase(it);
      return type;
    }
  return std::nullopt;
}

ScalarType Decode::need_type() {
  auto type = take_type();
  if (!type) fail("missing type");
  return *type;
}

void Decode::drop(std::initializer_list<std::string_view> list) {
  for (std::string_view q : list) take(q);
}

void Decode::finish() {
  if (!qualifiers_.empty()) fail("unknown qualifier '." + std::string(qualifiers_.front()) + "'");
}

// --- Decode: operands ---

const ParsedOperand& Decode::parsed(size_t index) const {
  if (index >= parsed_.operands.size()) fail("too few operands");
  return parsed_.operands[index];
}

void Decode::need_count(size_t low, size_t high) {
  if (count() < low || count() > high) fail("wrong number of operands");
}

std::vector<const ParsedOperand*> Decode::parts(const ParsedOperand& operand) {
  std::vector<const ParsedOperand*> out;
  if (operand.kind == ParsedOperand::Kind::vector)
    for (const ParsedOperand& part : operand.parts) out.push_back(&part);
  else
    out.push_back(&operand);
  return out;
}

Operand Decode::constant(uint64_t bits, int width) {
  Operand op;
  op.kind = Operand::Kind::constant;
  op.width = static_cast<uint8_t>(width);
  op.value = static_cast<int64_t>(bits);
  op.offset = module.constant_offset(bits, width == 16 && static_cast<int64_t>(bits) < 0 ? ~0ull : 0, width);
  return op;
}

Operand Decode::resolve(const ParsedOperand& p, int width, bool at_least) {
  using Kind = ParsedOperand::Kind;
  if (p.kind == Kind::integer) {
    if (width == 0) return constant(p.bits ? ~0u : 0, 0);
    return constant(width == 4 ? static_cast<uint32_t>(p.bits) : p.bits, width);
  }
  if (p.kind == Kind::f32 || p.kind == Kind::f64) {
    uint64_t bits = p.bits;
    if (p.kind == Kind::f64 && width == 4) {
      double value;
      std::memcpy(&value, &bits, 8);
      float narrow = static_cast<float>(value);
      uint32_t narrow_bits;
      std::memcpy(&narrow_bits, &narrow, 4);
      bits = narrow_bits;
    } else if (p.kind == Kind::f32 && width == 8) {
      fail("a single-precision constant is used as a 64-bit operand");
    }
    return constant(bits, width);
  }
  if (p.kind != Kind::name) fail("unexpected operand");
  ModuleBuilder::Found found = module.find(function, parsed_.scope, p.name);
  using Found = ModuleBuilder::Found;
  Operand op;
  switch (found.kind) {
    case Found::Kind::reg: {
      if (p.offset) fail("offset behind a register outside an address");
      op.kind = Operand::Kind::reg;
      op.offset = module.register_offset(found.index);
      int have = register_bytes(function.registers[found.index].type);
      if (have != width && !(at_least && have > width && width > 0))
        fail("operand '" + std::string(p.name) + "' has the wrong size");
      op.width = static_cast<uint8_t>(have);
      op.negated = p.negated;
      if (p.negated && width != 0) fail("'!' in front of an operand that is no predicate");
      return op;
    }
    case Found::Kind::special: {
      const SpecialRegister& special = special_register(found.index);
      if (special.bytes != width && !(special.bytes == 4 && width == 8))
        fail("special register has the wrong size");
      op.kind = Operand::Kind::reg;
      op.offset = module.temporary(width);
      op.width = static_cast<uint8_t>(width);
      Instr& move = module.prepend(*this);
      move.run = special.read;
      auto& list = module.program().operand_lists.emplace_back();
      list.push_back(op);
      move.ops = list.data();
      move.op_count = 1;
      return op;
    }
    case Found::Kind::variable: {
      const PlacedVariable& v = module.placed(found.index);
      uint64_t value = v.offset + static_cast<uint64_t>(p.offset);
      if (v.space == StateSpace::shared) {
        op.kind = Operand::Kind::reg;
        op.offset = module.temporary(width);
        op.width = static_cast<uint8_t>(width);
        Instr& move = module.prepend(*this);
        move.run = width == 8 ? read_shared_address_64 : read_shared_address_32;
        move.target = static_cast<uint32_t>(value);
        auto& list = module.program().operand_lists.emplace_back();
        list.push_back(op);
        move.ops = list.data();
        move.op_count = 1;
        return op;
      }
      return constant(value, width);
    }
    case Found::Kind::module_variable:
      return constant(kModuleWindow + module.program().module_variable_offsets[found.index] +
                          static_cast<uint64_t>(p.offset),
                      width);
    default:
      break;
  }
  if (found.kind == Found::Kind::function) fail("address of a function is not supported");
  fail("unknown name '" + std::string(p.name) + "'");
}

void Decode::dst(const ParsedOperand& p, int width, bool allow_sink) {
  auto& list = module.operand_list();
  if (p.kind == ParsedOperand::Kind::sink) {
    if (!allow_sink) fail("'_' is not allowed here");
    list.push_back({});
    return;
  }
  if (p.kind != ParsedOperand::Kind::name ||
      module.find(function, parsed_.scope, p.name).kind != ModuleBuilder::Found::Kind::reg)
    fail("destination is not a register");
  Operand op = resolve(p, width, false);
  if (op.negated) fail("destination is negated");
  list.push_back(op);
}

void Decode::dst_at_least(const ParsedOperand& p, int width) {
  auto& list = module.operand_list();
  if (p.kind == ParsedOperand::Kind::sink) {
    list.push_back({});
    return;
  }
  if (p.kind != ParsedOperand::Kind::name ||
      module.find(function, parsed_.scope, p.name).kind != ModuleBuilder::Found::Kind::reg)
    fail("destination is not a register");
  list.push_back(resolve(p, width, true));
}

void Decode::src(const ParsedOperand& p, int width) {
  Operand op = resolve(p, width, false);
  module.operand_list().push_back(op);
}

void Decode::src_at_least(const ParsedOperand& p, int width) {
  Operand op = resolve(p, width, true);
  module.operand_list().push_back(op);
}

void Decode::src_as(const ParsedOperand& p, ScalarType type) {
  int width = register_bytes(type);
  // Immediates of narrow types keep only their low bits, as registers do.
  if (p.kind == ParsedOperand::Kind::integer && size_bytes(type) == 2) {
    ParsedOperand narrow = p;
    narrow.bits &= 0xffff;
    src(narrow, width);
    return;
  }
  src(p, width);
}

void Decode::none() { module.operand_list().push_back({}); }

void Decode::address(const ParsedOperand& p) {
  if (p.kind != ParsedOperand::Kind::address) fail("expected an address in brackets");
  const ParsedOperand& base = p.parts.front();
  Operand op;
  if (base.kind == ParsedOperand::Kind::integer) {
    op.kind = Operand::Kind::none;
    op.width = 8;
    op.value = static_cast<int64_t>(base.bits);
  } else if (base.kind == ParsedOperand::Kind::name) {
    ModuleBuilder::Found found = module.find(function, parsed_.scope, base.name);
    using Found = ModuleBuilder::Found;
    if (found.kind == Found::Kind::reg) {
      int width = register_bytes(function.registers[found.index].type);
      if (width != 4 && width != 8) fail("address register has the wrong size");
      ParsedOperand plain = base;
      plain.offset = 0;
      op = resolve(plain, width, false);
      op.value = base.offset;
    } else if (found.kind == Found::Kind::variable) {
      const PlacedVariable& v = module.placed(found.index);
      op.kind = Operand::Kind::none;
      op.width = 8;
      op.value = static_cast<int64_t>(v.offset) + base.offset;
      op.shared_symbol = v.space == StateSpace::shared;
    } else if (found.kind == Found::Kind::module_variable) {
      op.kind = Operand::Kind::none;
      op.width = 8;
      op.value = static_cast<int64_t>(kModuleWindow + module.program().module_variable_offsets[found.index]) +
                 base.offset;
    } else {
      fail("unknown address '" + std::string(base.name) + "'");
    }
  } else {
    fail("bad address");
  }
  module.operand_list().push_back(op);
}

bool Decode::is_immediate(const ParsedOperand& p) const { return p.kind == ParsedOperand::Kind::integer; }

int64_t Decode::immediate(const ParsedOperand& p) {
  if (!is_immediate(p)) fail("expected an integer constant");
  return static_cast<int64_t>(p.bits);
}

int Decode::register_width(const ParsedOperand& p) const {
  if (p.kind != ParsedOperand::Kind::name) return -1;
  auto found = module.find(function, parsed_.scope, p.name);
  if (found.kind != ModuleBuilder::Found::Kind::reg) return -1;
  return register_bytes(function.registers[found.index].type);
}

int Decode::register_bits(const ParsedOperand& p) const {
  auto found = module.find(function, parsed_.scope, p.name);
  if (found.kind != ModuleBuilder::Found::Kind::reg) fail("expected a register");
  return 8 * size_bytes(function.registers[found.index].type);
}

}  // namespace gemmtune::emulator
