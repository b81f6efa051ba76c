// From parsed to executable instructions. Each instruction class registers its opcodes with a function that
// fills an Instr; whatever qualifier that function does not take is an error.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/error.h"
#include "emulator/program.h"

namespace gemmtune::emulator {

class ModuleBuilder;

/// Instr::mod[5] of instructions whose target is still the index of a parsed instruction.
constexpr uint32_t kBranchMark = 0xb4a2c4e5;

/// One instruction being decoded.
class Decode {
 public:
  Decode(ModuleBuilder& module, const ParsedFunction& function, const ParsedInstr& parsed, Instr& out);

  // Qualifiers: order is the programmer's, meaning is the set's.
  bool has(std::string_view qualifier) const;
  bool take(std::string_view qualifier);
  /// Index of the one that is present, or -1.
  int take_one_of(std::initializer_list<std::string_view> qualifiers);
  /// The one that is present; its absence is an error.
  int need_one_of(std::initializer_list<std::string_view> qualifiers);
  /// The first remaining qualifier that is a type.
  std::optional<ScalarType> take_type();
  ScalarType need_type();
  /// Removes qualifiers that only hint at caching or scope and have no effect on results.
  void drop(std::initializer_list<std::string_view> qualifiers);
  void finish();  ///< complains about what is left

  // Operands, in order of appearance.
  size_t count() const { return parsed_.operands.size(); }
  const ParsedOperand& parsed(size_t index) const;
  void need_count(size_t low, size_t high);
  /// Appends to the instruction. `width` in bytes a lane (0: predicate).
  void dst(const ParsedOperand& operand, int width, bool allow_sink = true);
  void src(const ParsedOperand& operand, int width);
  void src_as(const ParsedOperand& operand, ScalarType type);
  void address(const ParsedOperand& operand);  ///< "[reg+imm]", "[symbol]": base + displacement
  void none();
  /// Registers of at least `width` bytes: ld, st and cvt allow wider ones.
  void dst_at_least(const ParsedOperand& operand, int width);
  void src_at_least(const ParsedOperand& operand, int width);
  int64_t immediate(const ParsedOperand& operand);
  bool is_immediate(const ParsedOperand& operand) const;
  int register_bits(const ParsedOperand& operand) const;   ///< as declared: 16 for .b16
  int register_width(const ParsedOperand& operand) const;  ///< bytes, 0 predicate, -1 not a register
  /// {a,b,..} as parts; a scalar as one part.
  static std::vector<const ParsedOperand*> parts(const ParsedOperand& operand);

  [[noreturn]] void fail(const std::string& message) const;

  Instr& out;
  ModuleBuilder& module;
  const ParsedFunction& function;
  const ParsedInstr& in() const { return parsed_; }

 private:
  Operand resolve(const ParsedOperand& operand, int width, bool at_least);
  Operand constant(uint64_t bits, int width);

  const ParsedInstr& parsed_;
  std::vector<std::string_view> qualifiers_;
};

using DecodeFunction = void (*)(Decode&);
using OpcodeTable = std::map<std::string_view, DecodeFunction>;

// One per instruction class.
void register_move(OpcodeTable&);
void register_integer(OpcodeTable&);
void register_float(OpcodeTable&);
void register_compare(OpcodeTable&);
void register_convert(OpcodeTable&);
void register_control(OpcodeTable&);
void register_warp(OpcodeTable&);
void register_memory(OpcodeTable&);
void register_atomic(OpcodeTable&);
void register_barrier(OpcodeTable&);
void register_fence(OpcodeTable&);
void register_mbarrier(OpcodeTable&);
void register_bulk_copy(OpcodeTable&);
void register_mma(OpcodeTable&);
void register_wgmma(OpcodeTable&);
void register_tcgen05(OpcodeTable&);
void register_cluster(OpcodeTable&);

/// Throws PtxError.
std::shared_ptr<const Program> decode_program(std::string text);

/// The whole module while it is decoded.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(std::string text);
  std::shared_ptr<const Program> run();

  struct Found {
    enum class Kind { none, reg, variable, module_variable, function, label, special } kind = Kind::none;
    int index = 0;
  };
  Found find(const ParsedFunction& function, int scope, std::string_view name) const;
  /// Label to instruction index; throws.
  uint32_t label(const Decode& decode, std::string_view name) const;
  /// Labels of a .branchtargets list, nullptr if unknown.
  const std::vector<std::string_view>* branch_targets(const ParsedFunction&, int scope,
                                                      std::string_view name) const;
  static void decode_cluster_barrier(Decode&);
  uint32_t& cta_group() { return cta_group_; }  ///< of tcgen05 in the current function; 0: none yet
  uint32_t register_offset(int index) const { return register_offsets_[index]; }
  const PlacedVariable& placed(int index) const { return placed_[index]; }
  int find_function(std::string_view name) const;
  uint32_t constant_offset(uint64_t low, uint64_t high, int width);
  /// A register for values that the text names directly (special registers, addresses of shared variables).
  uint32_t temporary(int width);
  uint32_t carry_register();  ///< CC.CF of the carry chains, one bit a lane
  /// Puts an instruction in front of the one being decoded.
  Instr& prepend(const Decode& decode);
  Program& program() { return *program_; }
  std::vector<Operand>& operand_list() { return *current_list_; }
  const ParsedModule& parsed() const { return *program_->parsed; }

 private:
  void place_module_variables();
  void call_targets(CallSite& call);
  void layout_function(const ParsedFunction& f, Function& out);
  void decode_function(const ParsedFunction& f, Function& out);

  std::shared_ptr<Program> program_;
  OpcodeTable opcodes_;
  std::vector<uint32_t> register_offsets_;
  std::vector<PlacedVariable> placed_;
  std::vector<uint32_t> label_pcs_;  ///< of the current function: parsed index -> pc
  std::map<std::tuple<uint64_t, uint64_t, int>, uint32_t> constants_;
  std::map<std::string, uint32_t, std::less<>> forms_;
  std::vector<Instr> prepended_;
  std::vector<Operand>* current_list_ = nullptr;
  size_t first_table_ = 0;
  uint32_t cta_group_ = 0;
  std::optional<uint32_t> carry_register_;
  std::map<int, uint32_t> temporaries_;
  int temporaries_used_ = 0;
};

}  // namespace gemmtune::emulator
