#include "emulator/ptx_parser.h"

#include "emulator/error.h"
#include "emulator/ptx_cursor.h"
#include "emulator/ptx_instruction.h"
#include "emulator/ptx_variable.h"

namespace gemmtune::emulator {
namespace {

constexpr int kMaxNesting = 64;  ///< of braces in a function
constexpr uint64_t kMaxRegisterRange = 1 << 20;

/// Modules, functions and their statements.
class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text), variables_(cursor_) {}

  ParsedModule run() {
    while (!cursor_.at_end()) module_item();
    if (module_.target.empty()) throw PtxError(1, "no .target directive");
    return std::move(module_);
  }

 private:
  void module_item() {
    if (!cursor_.at_directive()) {
      // Line tables of the debug format: "@@DWARF" lines are not written by CUDA 13; a stray ';' is harmless.
      if (cursor_.accept(";")) return;
      cursor_.fail("unexpected " + cursor_.found() + " outside a function");
    }
    std::string_view d = cursor_.peek().text;
    if (d == "version") {
      cursor_.take();
      module_.version = std::string(cursor_.take().text);
    } else if (d == "target") {
      cursor_.take();
      module_.target = std::string(cursor_.word());
      while (cursor_.accept(",")) cursor_.word();
    } else if (d == "address_size") {
      cursor_.take();
      if (cursor_.integer() != 64) cursor_.fail("only 64-bit addresses are supported");
    } else if (d == "file") {
      cursor_.take();
      cursor_.integer();
      if (cursor_.take().kind != TokenKind::string) cursor_.fail("expected a file name");
      while (cursor_.accept(",")) cursor_.integer();
    } else if (d == "section") {
      cursor_.skip_section();
    } else if (d == "alias") {
      cursor_.fail("'.alias' is not supported");
    } else {
      declaration();
    }
  }

  void declaration() {
    bool is_extern = false;
    while (cursor_.is_directive("extern") || cursor_.is_directive("visible") ||
           cursor_.is_directive("weak") || cursor_.is_directive("common"))
      is_extern |= cursor_.take().text == "extern";
    if (cursor_.is_directive("entry") || cursor_.is_directive("func")) {
      function();
      return;
    }
    variables_.list(is_extern,
                    [&](std::string_view, Variable v) { module_.variables.push_back(std::move(v)); });
  }

  void function() {
    ParsedFunction f;
    f.line = cursor_.peek().line;
    f.is_entry = cursor_.take().text == "entry";
    if (!f.is_entry && cursor_.is("(")) f.results = variables_.parameters();
    f.name = std::string(cursor_.word());
    if (cursor_.is("(")) f.params = variables_.parameters();
    while (cursor_.at_directive()) function_directive(f);
    if (!cursor_.accept(";")) body(f);
    module_.functions.push_back(std::move(f));
  }

  void function_directive(ParsedFunction& f) {
    std::string_view d = cursor_.take().text;
    if (d == "maxntid")
      triple(f.max_block);
    else if (d == "reqntid")
      triple(f.required_block);
    else if (d == "reqnctapercluster")
      triple(f.required_cluster);
    else if (d == "explicitcluster")
      f.explicit_cluster = true;
    else if (d == "maxnreg")
      f.max_registers = static_cast<int>(cursor_.integer());
    else if (d == "minnctapersm" || d == "maxnctapersm" || d == "maxclusterrank")
      cursor_.integer();
    else if (d == "noreturn" || d == "blocksareclusters") {
    } else if (d == "pragma")
      pragma();
    else
      cursor_.fail("unknown function directive '." + std::string(d) + "'");
  }

  void triple(std::array<uint32_t, 3>& out) {
    out = {1, 1, 1};
    for (int i = 0;; ++i) {
      if (i == 3) cursor_.fail("more than three dimensions");
      out[i] = static_cast<uint32_t>(cursor_.integer());
      if (!cursor_.accept(",")) return;
    }
  }

  void pragma() {
    do {
      if (cursor_.take().kind != TokenKind::string) cursor_.fail("expected a string behind .pragma");
    } while (cursor_.accept(","));
    cursor_.accept(";");
  }

  void body(ParsedFunction& f) {
    f.has_body = true;
    cursor_.expect("{");
    f.scopes.emplace_back();
    scope_ = 0;
    int depth = 1;
    while (depth > 0) {
      if (cursor_.at_end()) throw PtxError(f.line, "function '" + f.name + "' is never closed");
      if (cursor_.accept("}")) {
        --depth;
        scope_ = f.scopes[scope_].parent;
      } else if (cursor_.accept("{")) {
        if (++depth > kMaxNesting) cursor_.fail("blocks are nested too deeply");
        f.scopes.emplace_back().parent = scope_;
        scope_ = static_cast<int>(f.scopes.size()) - 1;
      } else {
        statement(f);
      }
    }
  }

  void statement(ParsedFunction& f) {
    if (cursor_.accept(";")) return;
    if (cursor_.at_directive()) {
      body_directive(f);
    } else if (cursor_.peek().kind == TokenKind::word && cursor_.is(":", 1)) {
      label(f);
    } else {
      f.instructions.push_back(parse_instruction(cursor_));
      f.instructions.back().scope = scope_;
    }
  }

  /// Of an instruction, of a list of branch targets, or of a prototype, which nothing here needs.
  void label(ParsedFunction& f) {
    int line = cursor_.peek().line;
    std::string_view name = cursor_.take().text;
    cursor_.take();
    Scope& scope = f.scopes[scope_];
    if (cursor_.is_directive("branchtargets")) {
      cursor_.take();
      auto& targets = scope.branch_targets[name];
      do targets.push_back(cursor_.word());
      while (cursor_.accept(","));
      cursor_.expect(";");
    } else if (cursor_.is_directive("callprototype")) {
      while (!cursor_.is(";") && !cursor_.at_end()) cursor_.take();
      cursor_.expect(";");
    } else if (!scope.labels.emplace(name, static_cast<int>(f.instructions.size())).second) {
      throw PtxError(line, "label '" + std::string(name) + "' is defined twice");
    }
  }

  void body_directive(ParsedFunction& f) {
    std::string_view d = cursor_.peek().text;
    if (d == "reg") {
      cursor_.take();
      registers(f);
    } else if (d == "loc") {
      cursor_.take();
      cursor_.skip_location();
    } else if (d == "pragma") {
      cursor_.take();
      pragma();
    } else if (d == "section") {
      cursor_.skip_section();
    } else {
      variables_.list(false, [&](std::string_view name, Variable v) {
        if (!f.scopes[scope_].variables.emplace(name, static_cast<int>(f.variables.size())).second)
          cursor_.fail("'" + v.name + "' is declared twice");
        f.variables.push_back(std::move(v));
      });
    }
  }

  void registers(ParsedFunction& f) {
    if (!cursor_.at_directive()) cursor_.fail("expected a register type");
    auto type = parse_scalar_type(cursor_.take().text);
    if (!type || *type == ScalarType::none) cursor_.fail("unknown register type");
    do {
      std::string_view name = cursor_.word();
      if (!cursor_.accept("<")) {
        add_register(f, name, *type);
        continue;
      }
      uint64_t count = cursor_.integer();
      cursor_.expect(">");
      if (count > kMaxRegisterRange || f.registers.size() > 4 * kMaxRegisterRange)
        cursor_.fail("too many registers");
      for (uint64_t i = 0; i < count; ++i) {
        module_.interned.push_back(std::string(name) + std::to_string(i));
        add_register(f, module_.interned.back(), *type);
      }
    } while (cursor_.accept(","));
    cursor_.expect(";");
  }

  void add_register(ParsedFunction& f, std::string_view name, ScalarType type) {
    if (!f.scopes[scope_].registers.emplace(name, static_cast<int>(f.registers.size())).second)
      cursor_.fail("register '" + std::string(name) + "' is declared twice");
    f.registers.push_back({name, type});
  }

  PtxCursor cursor_;
  VariableParser variables_;
  int scope_ = 0;  ///< of the statement being read
  ParsedModule module_;
};

}  // namespace

ParsedModule parse_ptx(std::string_view text) { return Parser(text).run(); }

}  // namespace gemmtune::emulator
