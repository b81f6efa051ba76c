// Rows for people (aligned text), for spreadsheets (CSV) and for programs (JSON), from one description.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gemmtune {

enum class Format { table, json, csv };
/// Throws UsageError.
Format parse_format(std::string_view text);

/// What a person reads and what a program reads. A missing value is "-", null in JSON, empty in CSV.
struct Cell {
  std::string text = "-";
  nlohmann::ordered_json value;

  Cell() = default;
  Cell(std::string t) : text(t), value(std::move(t)) {}  // NOLINT: cells are written as literals
  Cell(std::string_view t) : Cell(std::string(t)) {}     // NOLINT
  Cell(const char* t) : Cell(std::string(t)) {}          // NOLINT
  Cell(int64_t number) : text(std::to_string(number)), value(number) {}  // NOLINT
  Cell(int number) : Cell(static_cast<int64_t>(number)) {}               // NOLINT
  Cell(size_t number) : Cell(static_cast<int64_t>(number)) {}            // NOLINT
  /// `digits` after the point for people; full precision for programs.
  static Cell real(double number, int digits);
  /// Shown as a percentage; a fraction for programs.
  static Cell share(double fraction);
};

struct Column {
  std::string key;    ///< JSON and CSV name, with its unit
  std::string title;  ///< heading of the text table
  bool left = false;  ///< aligned left
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string render(Format format) const;

 private:
  std::string text() const;
  std::string csv() const;
  std::string json() const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace gemmtune
