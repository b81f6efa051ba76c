// What the parser hands to the decoder: names still unresolved, one entry per declaration or instruction.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/scalar_type.h"

namespace gemmtune::emulator {

enum class StateSpace : uint8_t { none, reg, global, constant, shared, local, param };

struct ParsedOperand {
  enum class Kind : uint8_t { sink, name, integer, f32, f64, vector, address, pair, list };
  Kind kind = Kind::sink;
  bool negated = false;              ///< "!p"
  std::string_view name;             ///< register, label, symbol; with component: "%tid.x"
  uint64_t bits = 0;                 ///< integer (two's complement), f32 or f64 bits
  int64_t offset = 0;                ///< address: "[base + offset]"; name: "symbol + offset"
  std::vector<ParsedOperand> parts;  ///< vector, list, pair; address: base, then further elements ("{c0,c1}")
};

struct ParsedInstr {
  int line = 0;
  int scope = 0;
  std::string_view guard;  ///< predicate name, empty if none
  bool guard_negated = false;
  std::string_view opcode;
  std::vector<std::string_view> qualifiers;
  std::vector<ParsedOperand> operands;
  std::string text;  ///< one line, for messages
};

/// A variable in any state space but registers.
struct Variable {
  std::string name;
  StateSpace space = StateSpace::none;
  ScalarType type = ScalarType::b8;
  int align = 1;
  uint64_t bytes = 0;
  bool unsized = false;  ///< "extern .shared x[]"
  bool is_extern = false;
  std::vector<uint8_t> init;
  /// Bytes of `init` that hold the address of a symbol: (offset, symbol, addend, width, generic).
  struct Relocation {
    uint64_t offset;
    std::string symbol;
    int64_t addend;
    int width;
    bool generic;
  };
  std::vector<Relocation> relocations;
  int line = 0;
};

struct Register {
  std::string_view name;
  ScalarType type;
};

/// A brace level. Names declared inside hide outer ones.
struct Scope {
  int parent = -1;
  std::map<std::string_view, int> registers;  ///< index into ParsedFunction::registers
  std::map<std::string_view, int> variables;  ///< index into ParsedFunction::variables
  std::map<std::string_view, int> labels;     ///< index of the next instruction
  std::map<std::string_view, std::vector<std::string_view>> branch_targets;
};

struct ParsedFunction {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  int line = 0;
  std::vector<Variable> params;   ///< in order; kernel or function parameters
  std::vector<Variable> results;  ///< of a .func
  std::array<uint32_t, 3> required_block{}, max_block{}, required_cluster{};  ///< 0 = not given
  bool explicit_cluster = false;
  int max_registers = 0;
  std::vector<Scope> scopes;
  std::vector<ParsedInstr> instructions;
  std::vector<Register> registers;
  std::vector<Variable> variables;  ///< function scope: shared, local, param, and demoted global/const
};

struct ParsedModule {
  std::string version, target;
  std::deque<std::string> interned;  ///< register names spelled as ranges in the text ("%r<100>")
  std::vector<Variable> variables;
  std::vector<ParsedFunction> functions;
};

}  // namespace gemmtune::emulator
