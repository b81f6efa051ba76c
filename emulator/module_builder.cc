// The module while it is decoded: names, places of variables and registers, the order of functions.
#include <algorithm>
#include <cstring>

#include "emulator/address_space.h"
#include "emulator/decode.h"
#include "emulator/forms.h"
#include "emulator/ptx_parser.h"
#include "emulator/special_register.h"

namespace gemmtune::emulator {
namespace {

int register_bytes(ScalarType type) {
  if (type == ScalarType::pred) return 0;
  int bytes = size_bytes(type);
  return bytes <= 4 ? 4 : bytes;
}

uint32_t align_up(uint32_t value, uint32_t align) { return (value + align - 1) & ~(align - 1); }

/// Refuses what forms.h does not list, whatever the decoder made of it.
void check_form(const Decode& decode, const Program& program) {
  auto match = match_form(decode.in().opcode, decode.in().qualifiers);
  if (!match) decode.fail("this combination of qualifiers is not accepted");
  FormTarget target = match->rule->rule->target;
  if (target == FormTarget::hopper && !program.has_target("sm_90a"))
    decode.fail("this form exists on sm_90a only");
  if (target == FormTarget::blackwell && program.has_target("sm_90"))
    decode.fail("this form exists on sm_100a and sm_103a only");
}

}  // namespace

ModuleBuilder::ModuleBuilder(std::string text) : program_(std::make_shared<Program>()) {
  program_->text = std::move(text);
  program_->parsed = std::make_shared<ParsedModule>(parse_ptx(program_->text));
  program_->target = program_->parsed->target;
  register_move(opcodes_);
  register_integer(opcodes_);
  register_float(opcodes_);
  register_compare(opcodes_);
  register_convert(opcodes_);
  register_control(opcodes_);
  register_warp(opcodes_);
  register_memory(opcodes_);
  register_atomic(opcodes_);
  register_barrier(opcodes_);
  register_fence(opcodes_);
  register_mbarrier(opcodes_);
  register_bulk_copy(opcodes_);
  register_mma(opcodes_);
  register_wgmma(opcodes_);
  register_tcgen05(opcodes_);
  register_cluster(opcodes_);
}

int ModuleBuilder::find_function(std::string_view name) const {
  const auto& functions = parsed().functions;
  int declared = -1;
  for (size_t i = 0; i < functions.size(); ++i)
    if (functions[i].name == name) {
      if (functions[i].has_body) return static_cast<int>(i);
      declared = static_cast<int>(i);
    }
  return declared;
}

ModuleBuilder::Found ModuleBuilder::find(const ParsedFunction& f, int scope, std::string_view name) const {
  using Kind = Found::Kind;
  for (int s = scope; s >= 0; s = f.scopes[s].parent) {
    const Scope& level = f.scopes[s];
    if (auto it = level.registers.find(name); it != level.registers.end()) return {Kind::reg, it->second};
    if (auto it = level.variables.find(name); it != level.variables.end())
      return {Kind::variable, it->second};
    if (auto it = level.labels.find(name); it != level.labels.end()) return {Kind::label, it->second};
  }
  size_t base = f.variables.size();
  for (size_t i = 0; i < f.params.size(); ++i)
    if (f.params[i].name == name) return {Kind::variable, static_cast<int>(base + i)};
  for (size_t i = 0; i < f.results.size(); ++i)
    if (f.results[i].name == name) return {Kind::variable, static_cast<int>(base + f.params.size() + i)};
  const auto& globals = parsed().variables;
  size_t shared_base = base + f.params.size() + f.results.size();
  for (size_t i = 0; i < globals.size(); ++i)
    if (globals[i].name == name) {
      if (globals[i].space == StateSpace::shared) return {Kind::variable, static_cast<int>(shared_base + i)};
      return {Kind::module_variable, static_cast<int>(i)};
    }
  if (!name.empty() && name[0] == '%')
    if (int index = find_special_register(name); index >= 0) return {Kind::special, index};
  if (int index = find_function(name); index >= 0) return {Kind::function, index};
  return {};
}

const std::vector<std::string_view>* ModuleBuilder::branch_targets(const ParsedFunction& f, int scope,
                                                                   std::string_view name) const {
  for (int s = scope; s >= 0; s = f.scopes[s].parent)
    if (auto it = f.scopes[s].branch_targets.find(name); it != f.scopes[s].branch_targets.end())
      return &it->second;
  return nullptr;
}

uint32_t ModuleBuilder::label(const Decode& decode, std::string_view name) const {
  Found found = find(decode.function, decode.in().scope, name);
  if (found.kind != Found::Kind::label) decode.fail("unknown label '" + std::string(name) + "'");
  return static_cast<uint32_t>(found.index);
}

uint32_t ModuleBuilder::constant_offset(uint64_t low, uint64_t high, int width) {
  auto [it, fresh] = constants_.try_emplace({low, high, width}, 0);
  if (!fresh) return it->second;
  auto& pool = program_->constants;
  uint32_t offset = static_cast<uint32_t>(pool.size());
  pool.resize(offset + (width == 0 ? 64 : 32 * width));
  if (width == 0) std::memcpy(pool.data() + offset, &low, 4);
  for (int lane = 0; lane < 32 && width > 0; ++lane) {
    std::memcpy(pool.data() + offset + lane * width, &low, std::min(width, 8));
    if (width == 16) std::memcpy(pool.data() + offset + lane * width + 8, &high, 8);
  }
  it->second = offset;
  return offset;
}

uint32_t ModuleBuilder::temporary(int width) {
  int key = width * 64 + temporaries_used_++;
  auto [it, fresh] = temporaries_.try_emplace(key, 0);
  if (fresh) {
    it->second = program_->register_bytes;
    program_->register_bytes += width == 0 ? 64 : 32 * width;
  }
  return it->second;
}

uint32_t ModuleBuilder::carry_register() {
  if (!carry_register_) {
    carry_register_ = program_->register_bytes;
    program_->register_bytes += 64;
  }
  return *carry_register_;
}

Instr& ModuleBuilder::prepend(const Decode& decode) {
  Instr& in = prepended_.emplace_back();
  in.line = decode.in().line;
  return in;
}

void ModuleBuilder::place_module_variables() {
  uint64_t at = 256;  // address 0 of the window stays invalid
  for (const Variable& v : parsed().variables) {
    at = (at + static_cast<uint64_t>(v.align) - 1) & ~(static_cast<uint64_t>(v.align) - 1);
    program_->module_variable_offsets.push_back(at);
    if (v.space == StateSpace::global || v.space == StateSpace::constant) {
      if (v.is_extern) throw PtxError(v.line, "variable '" + v.name + "' is not defined in this module");
      at += v.bytes + 16;  // a gap, so that running off the end is seen
    }
  }
  program_->module_bytes = at;
}

void ModuleBuilder::layout_function(const ParsedFunction& f, Function& out) {
  register_offsets_.clear();
  for (const Register& r : f.registers) {
    register_offsets_.push_back(program_->register_bytes);
    int bytes = register_bytes(r.type);
    program_->register_bytes += bytes == 0 ? 64 : 32 * static_cast<uint32_t>(bytes);
    if (program_->register_bytes > (1u << 28)) throw PtxError(f.line, "too many registers");
  }
  placed_.clear();
  auto place_local = [&](const Variable& v) -> PlacedVariable {
    program_->local_bytes = align_up(program_->local_bytes, std::max(1, v.align));
    uint64_t offset = program_->local_bytes;
    program_->local_bytes += static_cast<uint32_t>(v.bytes);
    if (program_->local_bytes > (1u << 24)) throw PtxError(v.line, "too much local memory");
    return {v.space == StateSpace::param ? StateSpace::param : StateSpace::local, offset, &v};
  };
  // Static shared memory starts at the reserved kilobyte's end, the dynamic part follows (ptx-facts section
  // 7).
  uint32_t smem = 0;
  auto place_shared = [&](const Variable& v) -> PlacedVariable {
    if (v.unsized || v.bytes == 0) return {StateSpace::shared, UINT64_MAX, &v};
    smem = align_up(smem, static_cast<uint32_t>(v.align));
    uint64_t offset = kSharedBase + smem;
    smem += static_cast<uint32_t>(std::min<uint64_t>(v.bytes, 1 << 24));
    if (smem > (1u << 20)) throw PtxError(v.line, "too much static shared memory");
    out.static_smem_align = std::max<uint32_t>(out.static_smem_align, static_cast<uint32_t>(v.align));
    return {StateSpace::shared, offset, &v};
  };
  for (const Variable& v : f.variables) {
    if (v.space == StateSpace::shared)
      placed_.push_back(place_shared(v));
    else if (v.space == StateSpace::local || v.space == StateSpace::param)
      placed_.push_back(place_local(v));
    else
      throw PtxError(v.line, "variable '" + v.name + "' must be declared outside the function");
  }
  uint32_t param_at = 0;
  for (const Variable& v : f.params) {
    if (out.is_entry) {
      param_at = align_up(param_at, static_cast<uint32_t>(v.align));
      placed_.push_back({StateSpace::param, param_at, &v});
      out.params.push_back({param_at, static_cast<uint32_t>(v.bytes)});
      param_at += static_cast<uint32_t>(v.bytes);
    } else {
      placed_.push_back(place_local(v));
      out.params.push_back({static_cast<uint32_t>(placed_.back().offset), static_cast<uint32_t>(v.bytes)});
    }
  }
  out.param_bytes = param_at;
  for (const Variable& v : f.results) {
    placed_.push_back(place_local(v));
    out.results.push_back({static_cast<uint32_t>(placed_.back().offset), static_cast<uint32_t>(v.bytes)});
  }
  // Module-level shared variables that this function names; the compiler demotes static ones into the
  // function.
  std::vector<const Variable*> dynamic;
  for (const Variable& v : parsed().variables) {
    if (v.space != StateSpace::shared) {
      placed_.push_back({v.space, 0, &v});
      continue;
    }
    placed_.push_back(place_shared(v));
    if (placed_.back().offset == UINT64_MAX)
      // The strongest alignment of any dynamic array applies to every kernel of the module (ptx-facts section
      // 7).
      out.dynamic_smem_align = std::max<uint32_t>(out.dynamic_smem_align, static_cast<uint32_t>(v.align));
  }
  out.static_smem_bytes = smem;
  uint32_t dynamic_base = smem == 0 ? kSharedBase : align_up(kSharedBase + smem, out.dynamic_smem_align);
  for (PlacedVariable& p : placed_)
    if (p.space == StateSpace::shared && p.offset == UINT64_MAX) p.offset = dynamic_base;
}

void ModuleBuilder::decode_function(const ParsedFunction& f, Function& out) {
  layout_function(f, out);
  cta_group_ = 0;
  out.entry_pc = static_cast<uint32_t>(program_->code.size());
  label_pcs_.assign(f.instructions.size() + 1, 0);
  for (size_t i = 0; i < f.instructions.size(); ++i) {
    const ParsedInstr& parsed = f.instructions[i];
    label_pcs_[i] = static_cast<uint32_t>(program_->code.size());
    auto it = opcodes_.find(parsed.opcode);
    if (it == opcodes_.end())
      throw PtxError(parsed.line,
                     "unknown instruction '" + std::string(parsed.opcode) + "' in '" + parsed.text + "'");
    Instr in;
    in.line = parsed.line;
    temporaries_used_ = 0;
    prepended_.clear();
    // Operands of prepended instructions get their own lists, so hold on to this one by index.
    auto* list = &program_->operand_lists.emplace_back();
    Decode decode(*this, f, parsed, in);
    if (!parsed.guard.empty()) {
      Found guard = find(f, parsed.scope, parsed.guard);
      if (guard.kind != Found::Kind::reg || f.registers[guard.index].type != ScalarType::pred)
        decode.fail("guard '" + std::string(parsed.guard) + "' is not a predicate");
      in.guard = register_offsets_[guard.index];
      in.guard_negated = parsed.guard_negated;
    }
    current_list_ = list;
    it->second(decode);
    decode.finish();
    in.ops = list->data();
    in.op_count = static_cast<uint16_t>(list->size());
    std::string form(parsed.opcode);
    for (std::string_view q : parsed.qualifiers) {
      form += '.';
      form += q;
    }
    auto [form_it, fresh] = forms_.try_emplace(form, static_cast<uint32_t>(program_->forms.size()));
    if (fresh) {
      check_form(decode, *program_);
      program_->forms.push_back(form);
    }
    in.form = form_it->second;
    for (Instr& before : prepended_) {
      before.form = in.form;
      program_->code.push_back(before);
    }
    program_->code.push_back(in);
    program_->line_text.emplace(parsed.line, parsed.text);
  }
  // Falling off the end returns.
  label_pcs_.back() = static_cast<uint32_t>(program_->code.size());
  ParsedInstr end;
  end.line = f.line;
  end.opcode = "ret";
  end.text = "ret;";
  Instr in;
  in.line = f.line;
  in.form = UINT32_MAX;  // nobody wrote it
  Decode decode(*this, f, end, in);
  current_list_ = &program_->operand_lists.emplace_back();
  opcodes_.at("ret")(decode);
  program_->code.push_back(in);
  // Branches were given indices of parsed instructions; now their places are known.
  for (uint32_t pc = out.entry_pc; pc < program_->code.size(); ++pc)
    if (program_->code[pc].mod[5] == kBranchMark)
      program_->code[pc].target = label_pcs_[program_->code[pc].target];
  for (size_t i = first_table_; i < program_->jump_tables.size(); ++i)
    for (uint32_t& entry : program_->jump_tables[i]) entry = label_pcs_[entry];
  first_table_ = program_->jump_tables.size();
}

std::shared_ptr<const Program> ModuleBuilder::run() {
  place_module_variables();
  const auto& functions = parsed().functions;
  for (const ParsedFunction& f : functions) {
    Function& out = program_->functions.emplace_back();
    out.name = f.name;
    out.is_entry = f.is_entry;
    out.required_block = f.required_block;
    out.max_block = f.max_block;
    out.required_cluster = f.required_cluster;
    out.explicit_cluster = f.explicit_cluster;
    out.max_registers = f.max_registers;
  }
  // Functions have registers and frames of their own, before those of the kernels; kernels share the space
  // behind.
  uint32_t common_registers = 0, common_local = 0;
  for (bool entries : {false, true}) {
    if (entries) common_registers = program_->register_bytes, common_local = program_->local_bytes;
    for (size_t i = 0; i < functions.size(); ++i)
      if (functions[i].is_entry == entries && functions[i].has_body) {
        if (entries) program_->register_bytes = common_registers, program_->local_bytes = common_local;
        temporaries_.clear();
        carry_register_.reset();
        decode_function(functions[i], program_->functions[i]);
        program_->functions[i].register_bytes = program_->register_bytes;
        program_->functions[i].local_bytes = program_->local_bytes;
      }
  }
  for (CallSite& call : program_->calls) call_targets(call);
  return program_;
}

void ModuleBuilder::call_targets(CallSite& call) {
  if (call.function < 0) return;
  const Function& callee = program_->functions[call.function];
  if (callee.params.size() != call.arguments.size() || callee.results.size() != call.results.size())
    throw PtxError(1, "call of '" + callee.name + "' with the wrong number of parameters");
}

std::shared_ptr<const Program> decode_program(std::string text) {
  return ModuleBuilder(std::move(text)).run();
}

}  // namespace gemmtune::emulator
