#include "emulator/ptx_cursor.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "emulator/error.h"

namespace gemmtune::emulator {
namespace {

[[noreturn]] void bad_number(const Token& token) {
  throw PtxError(token.line, "bad number '" + std::string(token.text) + "'");
}

template <class Value, class... Base>
Value from_text(const Token& token, std::string_view digits, Base... base) {
  Value value{};
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base...);
  if (error != std::errc() || end != digits.data() + digits.size()) bad_number(token);
  return value;
}

uint64_t integer_bits(const Token& token, std::string_view digits, int base) {
  if (digits.ends_with('U') || digits.ends_with('u')) digits.remove_suffix(1);
  return from_text<uint64_t>(token, digits, base);
}

PtxNumber to_number(const Token& token) {
  using Kind = PtxNumber::Kind;
  std::string_view t = token.text;
  bool decimal_float = t.find_first_of(".eE") != std::string_view::npos;
  if (t.size() > 1 && t[0] == '0') {
    switch (t[1]) {
      case 'x':
      case 'X':
        return {Kind::integer, integer_bits(token, t.substr(2), 16)};
      case 'b':
      case 'B':
        return {Kind::integer, integer_bits(token, t.substr(2), 2)};
      case 'f':
      case 'F':
        if (t.size() != 10) bad_number(token);
        return {Kind::f32, integer_bits(token, t.substr(2), 16)};
      case 'd':
      case 'D':
        if (t.size() != 18) bad_number(token);
        return {Kind::f64, integer_bits(token, t.substr(2), 16)};
      default:
        break;
    }
    if (!decimal_float) return {Kind::integer, integer_bits(token, t.substr(1), 8)};
  }
  if (!decimal_float) return {Kind::integer, integer_bits(token, t, 10)};
  return {Kind::f64, std::bit_cast<uint64_t>(from_text<double>(token, t))};
}

}  // namespace

PtxNumber PtxNumber::negated() const {
  if (kind == Kind::integer) return {kind, 0 - bits};
  return {kind, bits ^ (kind == Kind::f32 ? 1ull << 31 : 1ull << 63)};
}

const Token& PtxCursor::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

const Token& PtxCursor::take() {
  const Token& token = peek();
  if (at_ < tokens_.size() - 1) ++at_;
  return token;
}

bool PtxCursor::is(std::string_view punctuation, size_t ahead) const {
  return peek(ahead).kind == TokenKind::punctuation && peek(ahead).text == punctuation;
}

bool PtxCursor::accept(std::string_view punctuation) {
  if (!is(punctuation)) return false;
  take();
  return true;
}

void PtxCursor::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail("expected '" + std::string(punctuation) + "' before " + found());
}

std::string_view PtxCursor::word() {
  if (peek().kind != TokenKind::word) fail("expected a name before " + found());
  return take().text;
}

PtxNumber PtxCursor::number(const char* otherwise) {
  bool negative = accept("-");
  if (peek().kind != TokenKind::number) fail(otherwise + found());
  PtxNumber value = to_number(take());
  return negative ? value.negated() : value;
}

uint64_t PtxCursor::integer() {
  PtxNumber value = number("expected an integer before ");
  if (value.kind != PtxNumber::Kind::integer) fail("expected an integer");
  return value.bits;
}

int64_t PtxCursor::offset() {
  if (!is("+") && !is("-")) return 0;
  accept("+");
  return static_cast<int64_t>(integer());
}

void PtxCursor::skip_parentheses() {
  expect("(");
  while (!is(")")) {
    if (at_end()) fail("parenthesis is never closed");
    take();
  }
  take();
}

void PtxCursor::skip_section() {
  int line = take().line;
  for (std::string_view brace : {"{", "}"}) {
    while (!is(brace)) {
      if (at_end()) throw PtxError(line, brace == "{" ? "section has no body" : "section is never closed");
      take();
    }
  }
  take();
}

void PtxCursor::skip_location() {
  int line = peek().line;
  while (peek().line == line && !at_end()) {
    if (at_directive() || is("{") || is("}")) return;
    take();
  }
}

std::string PtxCursor::text_since(size_t first) const {
  const char* begin = tokens_[first].text.data();
  const char* end = peek().text.data();
  std::string out;
  bool space = false;
  for (const char* p = begin; p < end && out.size() < 400; ++p) {
    if (is_space(*p)) {
      space = true;
      continue;
    }
    if (space && !out.empty()) out += ' ';
    space = false;
    out += *p;
  }
  return out;
}

std::string PtxCursor::found() const {
  return at_end() ? "the end of the text" : "'" + std::string(peek().text) + "'";
}

void PtxCursor::fail(const std::string& message) const { throw PtxError(peek().line, message); }

}  // namespace gemmtune::emulator
