// Splits PTX text into tokens. Views point into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace gemmtune::emulator {

enum class TokenKind : uint8_t { word, directive, number, string, punctuation, end };

/// `directive` is a dotted word without its dot: ".shared::cta" gives "shared::cta".
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  int line = 0;
  bool glued = false;  ///< no white space before it: tells "%tid.x" from "%r1 .x"
};

bool is_space(char c);

/// Throws PtxError. The last token has kind `end`.
std::vector<Token> tokenize(std::string_view text);

}  // namespace gemmtune::emulator
