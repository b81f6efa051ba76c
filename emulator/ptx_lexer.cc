#include "emulator/ptx_lexer.h"

#include <string>

#include "emulator/error.h"

namespace gemmtune::emulator {
namespace {

bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_alpha(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    tokens.reserve(text_.size() / 5);
    for (;;) {
      size_t before = at_;
      skip_space();
      bool glued = at_ == before && at_ > 0;
      if (at_ >= text_.size()) break;
      int line = line_;
      size_t start = at_;
      Token token = next();
      token.line = line;
      token.glued = glued;
      if (token.text.empty() && token.kind != TokenKind::string)
        token.text = text_.substr(start, at_ - start);
      tokens.push_back(token);
    }
    tokens.push_back({TokenKind::end, {}, line_, false});
    return tokens;
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_space() {
    while (at_ < text_.size()) {
      if (is_space(peek())) {
        if (peek() == '\n') ++line_;
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
      } else if (peek() == '/' && peek(1) == '*') {
        int start = line_;
        at_ += 2;
        while (at_ < text_.size() && !(peek() == '*' && peek(1) == '/')) {
          if (peek() == '\n') ++line_;
          ++at_;
        }
        if (at_ >= text_.size()) throw PtxError(start, "comment is never closed");
        at_ += 2;
      } else {
        return;
      }
    }
  }

  void take_word() {
    while (is_word(peek())) ++at_;
    while (peek() == ':' && peek(1) == ':' && is_word(peek(2))) {
      at_ += 2;
      while (is_word(peek())) ++at_;
    }
  }

  Token next() {
    size_t start = at_;
    char c = peek();
    if (is_alpha(c)) {
      while (is_word(peek())) ++at_;
      return {TokenKind::word, text_.substr(start, at_ - start), 0, false};
    }
    if (c == '.' && is_word(peek(1))) {
      ++at_;
      take_word();
      return {TokenKind::directive, text_.substr(start + 1, at_ - start - 1), 0, false};
    }
    if (is_digit(c)) {
      while (is_word(peek())) ++at_;
      // A decimal fraction ("1.0") occurs in createpolicy and in hand-written PTX; "1.e5" does not.
      if (peek() == '.' && is_digit(peek(1))) {
        ++at_;
        while (is_word(peek())) ++at_;
      }
      char exponent = text_[at_ - 1];
      bool hex = at_ - start > 1 && (text_[start + 1] == 'x' || text_[start + 1] == 'X');
      bool bits = at_ - start > 1 && (text_[start + 1] == 'f' || text_[start + 1] == 'F' ||
                                      text_[start + 1] == 'd' || text_[start + 1] == 'D');
      if (!hex && !bits && (exponent == 'e' || exponent == 'E') && (peek() == '-' || peek() == '+')) {
        ++at_;
        while (is_digit(peek())) ++at_;
      }
      return {TokenKind::number, text_.substr(start, at_ - start), 0, false};
    }
    if (c == '"') {
      ++at_;
      while (at_ < text_.size() && peek() != '"') {
        if (peek() == '\\') ++at_;
        if (peek() == '\n') ++line_;
        ++at_;
      }
      if (at_ >= text_.size()) throw PtxError(line_, "string is never closed");
      ++at_;
      return {TokenKind::string, text_.substr(start + 1, at_ - start - 2), 0, false};
    }
    static constexpr std::string_view kPunctuation = "{}[]()<>,;:+-*/=|&^!~@?";
    if (kPunctuation.find(c) == std::string_view::npos)
      throw PtxError(line_, std::string("unexpected character '") + c + "'");
    ++at_;
    return {TokenKind::punctuation, text_.substr(start, 1), 0, false};
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace gemmtune::emulator
