#include "gemm/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gemm/error.h"

namespace gemmtune {
namespace {

// A shape list or a config of this size is a mistake, and a device such as /dev/zero never ends.
constexpr size_t kMaxFileBytes = size_t{64} << 20;

/// Length of the UTF-8 sequence at the front of `text`, 0 if it is malformed (Unicode 15, table 3-7).
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    bool overlong = first == 0xe0 && second < 0xa0, surrogate = first == 0xed && second > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    bool overlong = first == 0xf0 && second < 0x90, too_large = first == 0xf4 && second > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

void require_text(std::string_view text, const std::string& name, std::string_view what) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw UsageError(fmt::format("{}: is UTF-16: save the {} as UTF-8", name, what));
  for (unsigned char c : text)
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
      throw UsageError(
          fmt::format("{}: is not a text file (it has a byte 0x{:02x}): expected a {}", name, c, what));
  int64_t line = 1;
  for (std::string_view rest = text; !rest.empty();) {
    size_t length = utf8_length(rest);
    if (length == 0)
      throw UsageError(fmt::format("{}:{}: is not UTF-8: save the {} as UTF-8", name, line, what));
    if (rest[0] == '\n') ++line;
    rest.remove_prefix(length);
  }
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::string_view what) {
  std::string name = printable(path.string(), 200);
  if (path.empty()) throw UsageError(fmt::format("no {} named: give the path of a file", what));
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw UsageError(fmt::format("{}: is a folder: name the {} in it", name, what));
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw UsageError(fmt::format("{}: cannot read the {}: {}", name, what, std::strerror(errno)));
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), got);
    if (text.size() > kMaxFileBytes)
      throw UsageError(fmt::format("{}: is larger than {} MiB: not a {}", name, kMaxFileBytes >> 20, what));
  }
  if (std::ferror(file.get())) throw UsageError(fmt::format("{}: cannot read the {}", name, what));
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  require_text(text, name, what);
  return text;
}

std::string printable(std::string_view text, size_t longest) {
  std::string result;
  for (char c : text) result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (result.size() <= longest) return result;
  while (longest > 0 && (static_cast<unsigned char>(result[longest]) & 0xc0) == 0x80) --longest;
  return result.substr(0, longest) + "...";
}

}  // namespace gemmtune
