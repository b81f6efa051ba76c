#include "gemm/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "gemm/error.h"
#include "gemm/text_file.h"

namespace gemmtune {
namespace {

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::optional<CsvRecord> CsvReader::next() {
  while (!rest_.empty()) {
    std::string_view line = trim(rest_.substr(0, rest_.find_first_of("\r\n")));
    if (!line.empty() && line[0] != '#') return record();
    skip(rest_.find_first_of("\r\n"));
    line_break();
  }
  return std::nullopt;
}

CsvRecord CsvReader::record() {
  CsvRecord record{line_, {}};
  do {
    record.fields.push_back(field());
  } while (take(','));
  line_break();
  return record;
}

std::string CsvReader::field() {
  skip(rest_.find_first_not_of(" \t"));
  if (!take('"')) {
    size_t end = rest_.find_first_of(",\r\n");
    std::string text(trim(rest_.substr(0, end)));
    skip(end);
    if (text.find('"') != std::string::npos)
      throw UsageError(
          fmt::format("{}:{}: a quote inside the field '{}': quote the whole field and double the quotes "
                      "in it",
                      file_, line_, printable(text)));
    return text;
  }
  std::string text;
  int64_t opened = line_;
  while (!take('"') || take('"', &text)) {
    if (rest_.empty())
      throw UsageError(fmt::format("{}:{}: a quoted field is not closed: add the missing \"", file_, opened));
    if (line_break()) {
      text += ' ';
    } else if (rest_[0] != '"') {
      text += rest_[0];
      rest_.remove_prefix(1);
    }
  }
  skip(rest_.find_first_not_of(" \t"));
  if (!rest_.empty() && std::string_view(",\r\n").find(rest_[0]) == std::string_view::npos)
    throw UsageError(fmt::format("{}:{}: text after the closing quote of '{}': a comma belongs there", file_,
                                 line_, printable(text)));
  return text;
}

void CsvReader::skip(size_t count) { rest_.remove_prefix(std::min(count, rest_.size())); }

bool CsvReader::take(char c, std::string* append_to) {
  if (!rest_.starts_with(c)) return false;
  rest_.remove_prefix(1);
  if (append_to) *append_to += c;
  return true;
}

/// CRLF, LF and CR end a line.
bool CsvReader::line_break() {
  bool carriage_return = take('\r');
  if (!take('\n') && !carriage_return) return false;
  ++line_;
  return true;
}

}  // namespace gemmtune
