// A place among a module's tokens, with the questions that a recursive-descent parser asks there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx_ast.h"
#include "emulator/ptx_lexer.h"

namespace gemmtune::emulator {

/// A constant as PTX writes it (PTX ISA, "Constants"): 10, 0x1f, 0b11, 017, 0f3F800000, 0d..., 1.5.
struct PtxNumber {
  using Kind = ParsedOperand::Kind;
  Kind kind = Kind::integer;  ///< or f32, or f64
  uint64_t bits = 0;          ///< an integer in two's complement, or the bits of the float

  /// Of its own kind: an integer's two's complement, a float's sign bit flipped.
  PtxNumber negated() const;
};

/// Every member that takes a token throws PtxError with the token's line if it is not the one wanted.
class PtxCursor {
 public:
  explicit PtxCursor(std::string_view text) : tokens_(tokenize(text)) {}

  const Token& peek(size_t ahead = 0) const;
  const Token& take();
  bool at_end() const { return peek().kind == TokenKind::end; }
  size_t position() const { return at_; }

  bool is(std::string_view punctuation, size_t ahead = 0) const;
  bool at_directive() const { return peek().kind == TokenKind::directive; }
  bool is_directive(std::string_view word) const { return at_directive() && peek().text == word; }
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);

  std::string_view word();
  /// With an optional minus. `otherwise` begins the message where there is none.
  PtxNumber number(const char* otherwise);
  /// An integer with an optional minus.
  uint64_t integer();
  /// "+8" or "-8" if one is here, else 0.
  int64_t offset();

  /// "( ... )" without another inside.
  void skip_parentheses();
  /// ".section .debug_info { ... }": braces do not nest inside.
  void skip_section();
  /// ".loc 1 20 3" and ".loc 1 20 3, function_name $L__info, inlined_at 1 5 6": to the end of the line.
  void skip_location();

  /// The text from token `first` to here, on one line with single spaces, at most 400 characters.
  std::string text_since(size_t first) const;

  /// The token here, for a message: "'x'" or "the end of the text".
  std::string found() const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace gemmtune::emulator
