#include "emulator/ptx_parser.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "emulator/error.h"
#include "emulator/ptx_lexer.h"

namespace gemmtune::emulator {
namespace {

/// Largest sum of static variables a module may declare. Random text must not make the emulator allocate
/// gigabytes.
constexpr uint64_t kMaxVariableBytes = 1 << 28;
constexpr int kMaxNesting = 64;
constexpr uint64_t kMaxRegisterRange = 1 << 20;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), tokens_(tokenize(text)) {}

  ParsedModule run() {
    while (peek().kind != TokenKind::end) module_item();
    if (module_.target.empty()) throw PtxError(1, "no .target directive");
    return std::move(module_);
  }

 private:
  // --- tokens ---
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = peek();
    if (at_ < tokens_.size() - 1) ++at_;
    return token;
  }
  bool is(std::string_view punctuation, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::punctuation && peek(ahead).text == punctuation;
  }
  bool is_directive(std::string_view word) const {
    return peek().kind == TokenKind::directive && peek().text == word;
  }
  bool accept(std::string_view punctuation) {
    if (!is(punctuation)) return false;
    take();
    return true;
  }
  [[noreturn]] void fail(const std::string& message) const { throw PtxError(peek().line, message); }
  void expect(std::string_view punctuation) {
    if (!accept(punctuation))
      fail("expected '" + std::string(punctuation) + "' before '" + std::string(peek().text) + "'");
  }
  std::string_view word() {
    if (peek().kind != TokenKind::word) fail("expected a name before '" + std::string(peek().text) + "'");
    return take().text;
  }

  uint64_t number_bits(const Token& token, ParsedOperand::Kind* kind) const {
    std::string_view t = token.text;
    auto bad = [&]() -> uint64_t { throw PtxError(token.line, "bad number '" + std::string(t) + "'"); };
    auto parse = [&](std::string_view digits, int base) -> uint64_t {
      if (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.remove_suffix(1);
      uint64_t value = 0;
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
      if (error != std::errc() || end != digits.data() + digits.size()) return bad();
      return value;
    };
    *kind = ParsedOperand::Kind::integer;
    if (t.size() > 1 && t[0] == '0') {
      char c = t[1];
      if (c == 'x' || c == 'X') return parse(t.substr(2), 16);
      if (c == 'b' || c == 'B') return parse(t.substr(2), 2);
      if (c == 'f' || c == 'F' || c == 'd' || c == 'D') {
        bool f32 = c == 'f' || c == 'F';
        if (t.size() != (f32 ? 10u : 18u)) return bad();
        *kind = f32 ? ParsedOperand::Kind::f32 : ParsedOperand::Kind::f64;
        return parse(t.substr(2), 16);
      }
      if (t.find_first_of(".eE") == std::string_view::npos) return parse(t.substr(1), 8);
    }
    if (t.find_first_of(".eE") != std::string_view::npos) {
      double value = 0;
      auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
      if (error != std::errc() || end != t.data() + t.size()) return bad();
      *kind = ParsedOperand::Kind::f64;
      uint64_t bits;
      std::memcpy(&bits, &value, 8);
      return bits;
    }
    return parse(t, 10);
  }

  uint64_t integer() {
    bool negative = accept("-");
    if (peek().kind != TokenKind::number)
      fail("expected an integer before '" + std::string(peek().text) + "'");
    ParsedOperand::Kind kind;
    uint64_t value = number_bits(take(), &kind);
    if (kind != ParsedOperand::Kind::integer) fail("expected an integer");
    return negative ? 0 - value : value;
  }

  // --- module level ---
  void module_item() {
    if (peek().kind != TokenKind::directive) {
      // Line tables of the debug format: "@@DWARF" lines are not written by CUDA 13; a stray ';' is harmless.
      if (accept(";")) return;
      fail("unexpected '" + std::string(peek().text) + "' outside a function");
    }
    std::string_view d = peek().text;
    if (d == "version") {
      take();
      module_.version = std::string(take().text);
    } else if (d == "target") {
      take();
      module_.target = std::string(word());
      while (accept(",")) word();
    } else if (d == "address_size") {
      take();
      if (integer() != 64) fail("only 64-bit addresses are supported");
    } else if (d == "file") {
      take();
      integer();
      if (take().kind != TokenKind::string) fail("expected a file name");
      while (accept(",")) integer();
    } else if (d == "section") {
      skip_section();
    } else if (d == "alias") {
      fail("'.alias' is not supported");
    } else {
      declaration();
    }
  }

  /// ".section .debug_info { ... }": braces do not nest inside.
  void skip_section() {
    int line = take().line;
    while (!is("{")) {
      if (peek().kind == TokenKind::end) throw PtxError(line, "section has no body");
      take();
    }
    while (!is("}")) {
      if (peek().kind == TokenKind::end) throw PtxError(line, "section is never closed");
      take();
    }
    take();
  }

  void declaration() {
    bool is_extern = false;
    while (is_directive("extern") || is_directive("visible") || is_directive("weak") ||
           is_directive("common"))
      is_extern |= take().text == "extern";
    if (is_directive("entry") || is_directive("func")) {
      function();
      return;
    }
    variable_list(module_.variables, is_extern, nullptr, 0);
  }

  static std::optional<StateSpace> space_of(std::string_view d) {
    if (d == "global") return StateSpace::global;
    if (d == "const") return StateSpace::constant;
    if (d == "shared") return StateSpace::shared;
    if (d == "local") return StateSpace::local;
    if (d == "param") return StateSpace::param;
    return std::nullopt;
  }

  /// One variable declaration up to but without ';', ',' or ')'.
  Variable variable(bool is_extern) {
    Variable v;
    v.line = peek().line;
    v.is_extern = is_extern;
    bool typed = false;
    while (peek().kind == TokenKind::directive) {
      std::string_view d = take().text;
      if (auto space = space_of(d)) {
        if (v.space == StateSpace::none) v.space = *space;
      } else if (d == "align") {
        uint64_t align = integer();
        if (align == 0 || align > 4096 || (align & (align - 1))) fail("bad alignment");
        v.align = static_cast<int>(align);
      } else if (d == "ptr") {
        // ".param .u64 .ptr .global .align 16 name": describes what the pointer points to, not the parameter.
        while (peek().kind == TokenKind::directive) {
          std::string_view what = take().text;
          if (what == "align")
            integer();
          else if (!space_of(what))
            fail("unexpected '." + std::string(what) + "' behind .ptr");
        }
      } else if (d == "v2" || d == "v4" || d == "v8") {
        vector_length_ = static_cast<uint64_t>(d[1] - '0');
      } else if (d == "attribute") {
        skip_parentheses();
      } else if (auto type = parse_scalar_type(d)) {
        v.type = *type;
        typed = true;
      } else {
        fail("unexpected '." + std::string(d) + "' in a declaration");
      }
    }
    if (!typed || v.space == StateSpace::none) fail("incomplete declaration");
    v.name = std::string(word());
    uint64_t count = vector_length_;
    vector_length_ = 1;
    bool array = false;
    while (accept("[")) {
      array = true;
      if (accept("]")) {
        v.unsized = true;
        continue;
      }
      uint64_t n = integer();
      if (n > kMaxVariableBytes || count * n > kMaxVariableBytes)
        fail("variable '" + v.name + "' is too large");
      count *= n;
      expect("]");
    }
    uint64_t element = static_cast<uint64_t>(size_bytes(v.type));
    v.bytes = v.unsized ? 0 : count * element;
    v.align = std::max<int>(v.align, static_cast<int>(element));
    if (accept("=")) initializer(v, element, array);
    if (v.space == StateSpace::global || v.space == StateSpace::constant) {
      total_bytes_ += v.bytes;
      if (total_bytes_ > kMaxVariableBytes) fail("variables are too large in all");
    }
    return v;
  }

  void skip_parentheses() {
    expect("(");
    while (!is(")")) {
      if (peek().kind == TokenKind::end) fail("parenthesis is never closed");
      take();
    }
    take();
  }

  void initializer(Variable& v, uint64_t element, bool array) {
    if (!array) {
      init_value(v, element);
    } else {
      init_list(v, element, 0);
    }
    if (v.unsized) {
      v.unsized = false;
      v.bytes = v.init.size();
    }
    if (v.init.size() > v.bytes) fail("too many initial values for '" + v.name + "'");
  }

  void init_list(Variable& v, uint64_t element, int depth) {
    if (depth > kMaxNesting) fail("initial values are nested too deeply");
    expect("{");
    while (!accept("}")) {
      if (is("{"))
        init_list(v, element, depth + 1);
      else
        init_value(v, element);
      if (!is("}")) expect(",");
    }
  }

  void init_value(Variable& v, uint64_t element) {
    size_t at = v.init.size();
    v.init.resize(at + element);
    uint64_t bits = 0;
    if (peek().kind == TokenKind::word) {
      std::string_view name = take().text;
      bool generic = false;
      if (name == "generic" && accept("(")) {
        generic = true;
        name = word();
        expect(")");
      } else if (name == "mask" || name == "generic") {
        fail("initial value '" + std::string(name) + "(...)' is not supported");
      }
      int64_t addend = 0;
      if (is("+") || is("-")) {
        accept("+");
        addend = static_cast<int64_t>(integer());
      }
      v.relocations.push_back({at, std::string(name), addend, static_cast<int>(element), generic});
    } else {
      bool negative = accept("-");
      if (peek().kind != TokenKind::number) fail("bad initial value '" + std::string(peek().text) + "'");
      ParsedOperand::Kind kind;
      bits = number_bits(take(), &kind);
      if (negative) bits = kind == ParsedOperand::Kind::integer ? 0 - bits : bits ^ (1ull << 63);
      if (kind == ParsedOperand::Kind::f64 && v.type == ScalarType::f32) {
        double value;
        std::memcpy(&value, &bits, 8);
        float narrow = static_cast<float>(value);
        uint32_t narrow_bits;
        std::memcpy(&narrow_bits, &narrow, 4);
        bits = narrow_bits;
      }
    }
    std::memcpy(v.init.data() + at, &bits, std::min<size_t>(element, 8));
  }

  void variable_list(std::vector<Variable>& out, bool is_extern, ParsedFunction* f, int scope) {
    size_t start = at_;
    for (;;) {
      Variable v = variable(is_extern);
      if (f) {
        auto view = stable_name(v.name);
        if (!f->scopes[scope].variables.emplace(view, static_cast<int>(out.size())).second)
          fail("'" + v.name + "' is declared twice");
      }
      StateSpace space = v.space;
      ScalarType type = v.type;
      int align = v.align;
      out.push_back(std::move(v));
      if (accept(";")) return;
      expect(",");
      // "x, y": the type carries over.
      if (peek().kind != TokenKind::directive) {
        Variable next;
        next.space = space;
        next.type = type;
        next.align = align;
        next.name = std::string(word());
        next.bytes = static_cast<uint64_t>(size_bytes(type));
        if (is("[") || is("=")) fail("array in a list of declarations is not supported");
        if (f) f->scopes[scope].variables.emplace(stable_name(next.name), static_cast<int>(out.size()));
        out.push_back(std::move(next));
        if (accept(";")) return;
      }
      if (at_ == start) fail("bad declaration");
    }
  }

  /// Names of variables are views into the text for the scope maps: the token just read.
  std::string_view stable_name(const std::string& name) const {
    for (size_t i = at_; i-- > 0;)
      if (tokens_[i].kind == TokenKind::word && tokens_[i].text == name) return tokens_[i].text;
    return {};
  }

  std::vector<Variable> param_list() {
    std::vector<Variable> params;
    expect("(");
    if (accept(")")) return params;
    for (;;) {
      if (is_directive("reg")) fail("register parameters are not supported");
      params.push_back(variable(false));
      if (accept(")")) return params;
      expect(",");
    }
  }

  // --- functions ---
  void function() {
    ParsedFunction f;
    f.line = peek().line;
    f.is_entry = take().text == "entry";
    if (!f.is_entry && is("(")) f.results = param_list();
    f.name = std::string(word());
    if (is("(")) f.params = param_list();
    while (peek().kind == TokenKind::directive) function_directive(f);
    if (accept(";")) {
      module_.functions.push_back(std::move(f));
      return;
    }
    f.has_body = true;
    expect("{");
    f.scopes.emplace_back();
    scope_ = 0;
    int depth = 1;
    while (depth > 0) {
      if (peek().kind == TokenKind::end) throw PtxError(f.line, "function '" + f.name + "' is never closed");
      if (accept("}")) {
        --depth;
        scope_ = f.scopes[scope_].parent;
      } else if (accept("{")) {
        if (++depth > kMaxNesting) fail("blocks are nested too deeply");
        f.scopes.emplace_back().parent = scope_;
        scope_ = static_cast<int>(f.scopes.size()) - 1;
      } else {
        statement(f);
      }
    }
    module_.functions.push_back(std::move(f));
  }

  void triple(std::array<uint32_t, 3>& out) {
    out = {1, 1, 1};
    for (int i = 0;; ++i) {
      if (i == 3) fail("more than three dimensions");
      out[i] = static_cast<uint32_t>(integer());
      if (!accept(",")) return;
    }
  }

  void function_directive(ParsedFunction& f) {
    std::string_view d = take().text;
    if (d == "maxntid")
      triple(f.max_block);
    else if (d == "reqntid")
      triple(f.required_block);
    else if (d == "reqnctapercluster")
      triple(f.required_cluster);
    else if (d == "explicitcluster")
      f.explicit_cluster = true;
    else if (d == "maxnreg")
      f.max_registers = static_cast<int>(integer());
    else if (d == "minnctapersm" || d == "maxnctapersm" || d == "maxclusterrank")
      integer();
    else if (d == "noreturn" || d == "blocksareclusters") {
    } else if (d == "pragma")
      pragma();
    else
      fail("unknown function directive '." + std::string(d) + "'");
  }

  void pragma() {
    do {
      if (take().kind != TokenKind::string) fail("expected a string behind .pragma");
    } while (accept(","));
    accept(";");
  }

  void statement(ParsedFunction& f) {
    const Token& first = peek();
    if (accept(";")) return;
    if (first.kind == TokenKind::directive) {
      body_directive(f);
      return;
    }
    if (first.kind == TokenKind::word && is(":", 1)) {
      std::string_view label = take().text;
      take();
      if (is_directive("branchtargets")) {
        take();
        auto& targets = f.scopes[scope_].branch_targets[label];
        do targets.push_back(word());
        while (accept(","));
        expect(";");
        return;
      }
      if (is_directive("callprototype")) {
        while (!is(";") && peek().kind != TokenKind::end) take();
        expect(";");
        return;
      }
      if (!f.scopes[scope_].labels.emplace(label, static_cast<int>(f.instructions.size())).second)
        throw PtxError(first.line, "label '" + std::string(label) + "' is defined twice");
      return;
    }
    instruction(f);
  }

  void body_directive(ParsedFunction& f) {
    std::string_view d = peek().text;
    if (d == "reg") {
      take();
      registers(f);
    } else if (d == "loc") {
      take();
      skip_location();
    } else if (d == "pragma") {
      take();
      pragma();
    } else if (d == "section") {
      skip_section();
    } else {
      variable_list(f.variables, false, &f, scope_);
    }
  }

  /// ".loc 1 20 3" and ".loc 1 20 3, function_name $L__info, inlined_at 1 5 6".
  void skip_location() {
    int line = peek().line;
    while (peek().line == line && peek().kind != TokenKind::end) {
      if (peek().kind == TokenKind::directive || is("{") || is("}")) return;
      take();
    }
  }

  void registers(ParsedFunction& f) {
    if (peek().kind != TokenKind::directive) fail("expected a register type");
    auto type = parse_scalar_type(take().text);
    if (!type || *type == ScalarType::none) fail("unknown register type");
    do {
      std::string_view name = word();
      if (!accept("<")) {
        add_register(f, name, *type);
        continue;
      }
      uint64_t count = integer();
      expect(">");
      if (count > kMaxRegisterRange || f.registers.size() > 4 * kMaxRegisterRange) fail("too many registers");
      for (uint64_t i = 0; i < count; ++i) {
        module_.interned.push_back(std::string(name) + std::to_string(i));
        add_register(f, module_.interned.back(), *type);
      }
    } while (accept(","));
    expect(";");
  }

  void add_register(ParsedFunction& f, std::string_view name, ScalarType type) {
    if (!f.scopes[scope_].registers.emplace(name, static_cast<int>(f.registers.size())).second)
      fail("register '" + std::string(name) + "' is declared twice");
    f.registers.push_back({name, type});
  }

  // --- instructions ---
  void instruction(ParsedFunction& f) {
    ParsedInstr in;
    in.line = peek().line;
    in.scope = scope_;
    size_t first_token = at_;
    if (accept("@")) {
      in.guard_negated = accept("!");
      in.guard = word();
    }
    in.opcode = word();
    while (peek().kind == TokenKind::directive) {
      in.qualifiers.push_back(take().text);
      // "tcgen05.mma...cta_group::1" is one token, "get_first_ctaid::x" too; nothing else to join.
    }
    while (!is(";")) {
      if (peek().kind == TokenKind::end) throw PtxError(in.line, "instruction is never closed");
      in.operands.push_back(operand(0));
      if (accept("|")) {
        ParsedOperand pair;
        pair.kind = ParsedOperand::Kind::pair;
        pair.parts.push_back(std::move(in.operands.back()));
        pair.parts.push_back(operand(0));
        in.operands.back() = std::move(pair);
      }
      if (!is(";")) expect(",");
    }
    in.text = text_between(first_token, at_);
    take();
    f.instructions.push_back(std::move(in));
  }

  /// The instruction on one line with single spaces.
  std::string text_between(size_t first, size_t last) const {
    const char* begin = tokens_[first].text.data();
    const char* end = tokens_[last].text.data();
    std::string out;
    bool space = false;
    for (const char* p = begin; p < end && out.size() < 400; ++p) {
      if (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') {
        space = true;
        continue;
      }
      if (space && !out.empty()) out += ' ';
      space = false;
      out += *p;
    }
    return out + ";";
  }

  ParsedOperand operand(int depth) {
    if (depth > 4) fail("operands are nested too deeply");
    ParsedOperand op;
    if (accept("!")) {
      op = operand(depth + 1);
      op.negated = !op.negated;
      return op;
    }
    if (accept("{")) return sequence(ParsedOperand::Kind::vector, "}", depth);
    if (accept("[")) {
      op = sequence(ParsedOperand::Kind::address, "]", depth);
      if (op.parts.empty()) fail("empty address");
      return op;
    }
    if (accept("(")) return sequence(ParsedOperand::Kind::list, ")", depth);
    if (is("-") || peek().kind == TokenKind::number) {
      bool negative = accept("-");
      if (peek().kind != TokenKind::number) fail("unexpected '" + std::string(peek().text) + "'");
      op.bits = number_bits(take(), &op.kind);
      if (negative) {
        if (op.kind == ParsedOperand::Kind::integer)
          op.bits = 0 - op.bits;
        else
          op.bits ^= op.kind == ParsedOperand::Kind::f32 ? 1ull << 31 : 1ull << 63;
      }
      // Constant expressions such as "4+8" do not occur in generated code, but offsets of addresses do.
      return op;
    }
    if (peek().kind != TokenKind::word) fail("unexpected '" + std::string(peek().text) + "' among operands");
    op.name = take().text;
    if (op.name == "_") {
      op.kind = ParsedOperand::Kind::sink;
      return op;
    }
    op.kind = ParsedOperand::Kind::name;
    if (peek().kind == TokenKind::directive && peek().glued) {
      std::string_view component = take().text;
      op.name = std::string_view(op.name.data(), op.name.size() + 1 + component.size());
    }
    if (is("+") || is("-")) {
      accept("+");
      op.offset = static_cast<int64_t>(integer());
    }
    return op;
  }

  ParsedOperand sequence(ParsedOperand::Kind kind, std::string_view close, int depth) {
    ParsedOperand op;
    op.kind = kind;
    if (accept(close)) return op;
    for (;;) {
      op.parts.push_back(operand(depth + 1));
      if (accept(close)) break;
      expect(",");
    }
    if (kind == ParsedOperand::Kind::address) op.offset = op.parts.front().offset;
    return op;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int scope_ = 0;
  uint64_t vector_length_ = 1;
  uint64_t total_bytes_ = 0;
  ParsedModule module_;
};

}  // namespace

ParsedModule parse_ptx(std::string_view text) { return Parser(text).run(); }

}  // namespace gemmtune::emulator
