#include "tool/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "gemm/error.h"
#include "gemm/suggest.h"

namespace gemmtune {

Format parse_format(std::string_view text) {
  if (text == "table") return Format::table;
  if (text == "json") return Format::json;
  if (text == "csv") return Format::csv;
  const std::vector<std::string> known = {"table", "json", "csv"};
  throw UsageError(fmt::format("unknown format '{}'{}: table, json or csv", text, did_you_mean(text, known)));
}

Cell Cell::real(double number, int digits) {
  Cell cell;
  cell.text = fmt::format("{:.{}f}", number, digits);
  cell.value = number;
  return cell;
}

Cell Cell::share(double fraction) {
  Cell cell;
  cell.text = fmt::format("{:.0f} %", 100 * fraction);
  cell.value = fraction;
  return cell;
}

std::string Table::render(Format format) const {
  switch (format) {
    case Format::table:
      return text();
    case Format::csv:
      return csv();
    case Format::json:
      return json();
  }
  return "";
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].text.size());
    widths.push_back(width);
  }
  std::string out;
  auto line = [&](auto text_of) {
    std::string one;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) one += "  ";
      one += columns_[i].left ? fmt::format("{:<{}}", text_of(i), widths[i])
                              : fmt::format("{:>{}}", text_of(i), widths[i]);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    out += one + "\n";
  };
  line([&](size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) line([&](size_t i) { return row[i].text; });
  return out;
}

std::string Table::csv() const {
  auto quoted = [](std::string text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (char c : text) {
      if (c == '"') out += '"';
      out += c;
    }
    return out + "\"";
  };
  std::string out;
  for (size_t i = 0; i < columns_.size(); ++i) out += (i ? "," : "") + columns_[i].key;
  out += "\n";
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i) out += ',';
      const auto& value = row[i].value;
      out += value.is_null() ? "" : value.is_string() ? quoted(value.get<std::string>()) : value.dump();
    }
    out += "\n";
  }
  return out;
}

std::string Table::json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& row : rows_) {
    nlohmann::ordered_json object;
    for (size_t i = 0; i < row.size(); ++i) object[columns_[i].key] = row[i].value;
    list.push_back(std::move(object));
  }
  return list.dump(2) + "\n";
}

}  // namespace gemmtune
