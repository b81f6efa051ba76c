// A module decoded for execution: one handler and resolved operands per instruction.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/ptx_ast.h"

namespace gemmtune::emulator {

struct Warp;
struct Fragment;
struct Instr;
using Mask = uint32_t;  ///< one bit a lane

/// What an instruction did with the program counter.
enum class Action : uint8_t {
  next,   ///< go on behind it
  jump,   ///< it has set pc, masks or fragments itself
  wait,   ///< run the same instruction again once Fragment::wait says so
  yield,  ///< next, but let others run first
};

using Handler = Action (*)(Warp&, Fragment&, const Instr&, Mask);

/// Registers live in a byte array per warp, lane-major inside a register: 4, 8 or 16 bytes a lane; a
/// predicate is one 32-bit lane mask. Immediates sit in a pool of the same layout, so handlers never ask
/// which of both it is.
struct Operand {
  enum class Kind : uint8_t { none, reg, constant };
  Kind kind = Kind::none;
  uint8_t width = 0;           ///< bytes a lane; 0: predicate
  bool negated = false;        ///< predicates only
  bool shared_symbol = false;  ///< address of a shared variable: the CTA's rank bits are added
  uint32_t offset = 0;         ///< bytes into registers or constants
  int64_t value = 0;           ///< address: displacement; constant: its value
};

struct Instr {
  Handler run = nullptr;
  const Operand* ops = nullptr;
  uint32_t guard = kNoGuard;  ///< register offset of the predicate
  bool guard_negated = false;
  bool collective = false;  ///< runs even when the guard leaves no lane of this fragment
  uint16_t op_count = 0;
  int32_t line = 0;
  uint32_t form = 0;    ///< index into Program::forms
  uint32_t target = 0;  ///< branch, call
  /// Meaning belongs to the handler's file.
  std::array<uint32_t, 6> mod{};
  const void* extra = nullptr;

  static constexpr uint32_t kNoGuard = UINT32_MAX;
};

/// Where a variable lives at run time, as an offset into its space.
struct PlacedVariable {
  StateSpace space;
  uint64_t offset;  ///< shared: from the start of the static part; global/const: index of the module variable
  const Variable* variable;
};

struct FunctionParam {
  uint32_t offset, bytes;
};  ///< in the lane's local memory

struct Function {
  std::string name;
  bool is_entry = false;
  uint32_t entry_pc = 0;
  std::vector<FunctionParam> params, results;  ///< .func: local memory; entry: parameter block
  uint32_t param_bytes = 0;                    ///< entry
  uint32_t register_bytes = 0,
           local_bytes = 0;  ///< entry: all a warp (a lane) needs, called functions included
  std::array<uint32_t, 3> required_block{}, max_block{}, required_cluster{};
  bool explicit_cluster = false;
  int max_registers = 0;
  uint32_t static_smem_bytes = 0, static_smem_align = 1;
  uint32_t dynamic_smem_align = 16;
  bool uses_dynamic_smem = false;
};

struct CallSite {
  enum class Builtin : uint8_t { none, vprintf, assertfail };
  Builtin builtin = Builtin::none;
  int function = -1;
  std::vector<FunctionParam> arguments, results;
};

struct Program {
  std::string text;  ///< the PTX; views point into it
  std::shared_ptr<ParsedModule> parsed;
  std::string target;
  std::vector<Instr> code;
  std::vector<std::string> forms;        ///< distinct mnemonics with qualifiers
  std::map<int, std::string> line_text;  ///< instruction of each line, for messages
  std::vector<Function> functions;
  std::vector<uint8_t> constants;
  std::vector<uint64_t> module_variable_offsets;  ///< in the module window, one a parsed variable
  uint64_t module_bytes = 0;
  uint32_t register_bytes = 0, local_bytes = 0;  ///< while decoding: the next free byte
  std::deque<std::vector<Operand>> operand_lists;
  std::deque<CallSite> calls;
  std::deque<std::vector<uint32_t>> jump_tables;
  /// Clusters may influence each other through memory (atomics, volatile or acquiring loads): they then share
  /// one host thread.
  bool clusters_communicate = false;
  bool reads_global_async = false;  ///< has tensor or bulk copies out of global memory
  bool has_target(std::string_view prefix) const { return target.rfind(prefix, 0) == 0; }
  const Function* find_entry(std::string_view name) const {
    for (const Function& f : functions)
      if (f.is_entry && f.name == name) return &f;
    return nullptr;
  }
};

}  // namespace gemmtune::emulator
