// Comma-separated files that users hand in: cut into records, with one-line messages that name file and line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gemmtune {

struct CsvRecord {
  int64_t line = 0;
  std::vector<std::string> fields;
};

/// Cuts text into records by RFC 4180, trims fields, and drops '#' lines and blank lines. A line break inside
/// a quoted field is read as a space. Throws UsageError.
class CsvReader {
 public:
  /// `file` is what messages call it. Both must outlive the reader.
  CsvReader(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  std::optional<CsvRecord> next();

 private:
  CsvRecord record();
  std::string field();
  void skip(size_t count);
  bool take(char c, std::string* append_to = nullptr);
  bool line_break();

  std::string_view rest_;
  std::string_view file_;
  int64_t line_ = 1;
};

}  // namespace gemmtune
