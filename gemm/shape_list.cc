#include "gemm/shape_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "gemm/csv.h"
#include "gemm/error.h"
#include "gemm/suggest.h"
#include "gemm/text_file.h"

namespace gemmtune {
namespace {

constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;  // as parse_shape: TMA coordinates are signed 32-bit
constexpr std::string_view kExpectedHeader = "m,n,k,name,weight";
constexpr std::array<std::string_view, 5> kColumns = {"m", "n", "k", "name", "weight"};
enum Column { kM, kN, kK, kName, kWeight };

/// For each column its place in a record; -1 where the file has none.
using Places = std::array<int, kColumns.size()>;

Places read_header(const CsvRecord& header, std::string_view file) {
  auto fail = [&](const std::string& message) {
    return UsageError(fmt::format("{}:{}: {}", file, header.line, message));
  };
  auto is_data = [](const std::string& field) {
    return !field.empty() && (std::isdigit(static_cast<unsigned char>(field[0])) || field[0] == '-');
  };
  if (std::ranges::any_of(header.fields, is_data))
    throw fail(fmt::format("no header: put a line such as '{}' above '{}'", kExpectedHeader,
                           printable(fmt::format("{}", fmt::join(header.fields, ",")))));
  if (header.fields.size() == 1 && header.fields[0].find_first_of(";\t|") != std::string::npos)
    throw fail(fmt::format("no commas in the header '{}': separate the columns by commas",
                           printable(header.fields[0])));
  Places places;
  places.fill(-1);
  const std::vector<std::string> known(kColumns.begin(), kColumns.end());
  for (size_t i = 0; i < header.fields.size(); ++i) {
    std::string name = header.fields[i];
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name.empty()) throw fail(fmt::format("column {} has no name: name it or remove it", i + 1));
    auto found = std::ranges::find(kColumns, name);
    if (found == kColumns.end())
      throw fail(fmt::format("unknown column '{}'{}: the columns are m, n, k and optionally name, weight",
                             printable(header.fields[i]), did_you_mean(name, known)));
    int& place = places[static_cast<size_t>(found - kColumns.begin())];
    if (place >= 0) throw fail(fmt::format("column '{}' occurs twice: remove one", name));
    place = static_cast<int>(i);
  }
  for (Column column : {kM, kN, kK})
    if (places[column] < 0)
      throw fail(fmt::format("column '{}' is missing: the header needs m, n and k, such as '{}'",
                             kColumns[column], kExpectedHeader));
  return places;
}

int64_t read_size(std::string_view text, std::string_view column) {
  auto fail = [&](std::string_view message) {
    return UsageError(fmt::format("{} '{}' {}", column, printable(text), message));
  };
  if (text.empty())
    throw UsageError(fmt::format("{} is empty: give a whole number from 1 to {}", column, kMaxSize));
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    throw fail(fmt::format("is not a whole number: give one from 1 to {}", kMaxSize));
  if (text[0] == '-' || (error == std::errc() && value == 0))
    throw fail(fmt::format("is not positive: give a number from 1 to {}", kMaxSize));
  if (error != std::errc() || value > kMaxSize) throw fail(fmt::format("is larger than {}", kMaxSize));
  return value;
}

double read_weight(std::string_view text) {
  if (text.empty()) return 1;
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || !(value > 0))
    throw UsageError(
        fmt::format("weight '{}' is not a positive number: give one such as 1 or 0.25", printable(text)));
  return value;
}

ListedShape read_row(const CsvRecord& record, const Places& places) {
  auto field = [&](Column column) -> std::string_view {
    return places[column] < 0 ? std::string_view() : record.fields[static_cast<size_t>(places[column])];
  };
  Shape shape{read_size(field(kM), "m"), read_size(field(kN), "n"), read_size(field(kK), "k")};
  return {shape, std::string(field(kName)), read_weight(field(kWeight))};
}

/// Rows of one shape become one, where the first of them stood.
class Merged {
 public:
  void add(const ListedShape& row) {
    auto [found, is_new] = place_.try_emplace(row.shape, shapes.size());
    if (is_new) {
      shapes.push_back({row.shape, "", 0});
      names_.emplace_back();
    }
    ListedShape& listed = shapes[found->second];
    std::vector<std::string>& names = names_[found->second];
    listed.weight += row.weight;
    if (!std::isfinite(listed.weight))
      throw UsageError(fmt::format("the weights of {} add up to more than a number holds: divide all weights",
                                   to_string(row.shape)));
    if (row.name.empty() || std::ranges::find(names, row.name) != names.end()) return;
    listed.name += (names.empty() ? "" : " + ") + row.name;
    names.push_back(row.name);
  }

  std::vector<ListedShape> shapes;

 private:
  std::map<Shape, size_t> place_;
  std::vector<std::vector<std::string>> names_;
};

}  // namespace

std::vector<ListedShape> parse_shape_list(std::string_view text, std::string_view file) {
  CsvReader lines(text, file);
  std::optional<CsvRecord> header = lines.next();
  if (!header)
    throw UsageError(fmt::format("{}:1: the shape list is empty: give a header '{}' and one line a shape",
                                 file, kExpectedHeader));
  Places places = read_header(*header, file);
  Merged merged;
  int64_t last_line = header->line;
  while (std::optional<CsvRecord> record = lines.next()) {
    last_line = record->line;
    if (record->fields.size() != header->fields.size())
      throw UsageError(
          fmt::format("{}:{}: {} fields where the header has {}: give every column a field, and quote "
                      "names with commas",
                      file, last_line, record->fields.size(), header->fields.size()));
    try {
      merged.add(read_row(*record, places));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}:{}: {}", file, last_line, error.what()));
    }
  }
  if (merged.shapes.empty())
    throw UsageError(
        fmt::format("{}:{}: no shapes below the header: add lines such as 4096,4096,4096", file, last_line));
  return std::move(merged.shapes);
}

std::vector<ListedShape> read_shape_list(const std::filesystem::path& path) {
  return parse_shape_list(read_text_file(path, "shape list"), printable(path.string(), 200));
}

std::string to_csv(std::span<const ListedShape> shapes) {
  std::string text = fmt::format("{}\n", kExpectedHeader);
  for (const ListedShape& listed : shapes) {
    std::string name = listed.name;
    bool quoted = name.find_first_of(",\"\r\n") != std::string::npos || name.find_first_of(" \t") == 0 ||
                  name.find_last_of(" \t") + 1 == name.size();
    if (quoted) {
      name = "\"";
      for (char c : listed.name) name += c == '"' ? "\"\"" : std::string(1, c);
      name += '"';
    }
    text +=
        fmt::format("{},{},{},{},{}\n", listed.shape.m, listed.shape.n, listed.shape.k, name, listed.weight);
  }
  return text;
}

}  // namespace gemmtune
