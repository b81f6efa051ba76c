// Shape lists: the CSV that `--shapes` reads and `gemmtune shapes` writes.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/problem.h"

namespace gemmtune {

/// One line of a shape list. The weight says how much this shape counts against the others, such as how often
/// it runs.
struct ListedShape {
  Shape shape;
  std::string name;
  double weight = 1;
  bool operator==(const ListedShape&) const = default;
};

/// CSV with a header: m, n, k and optionally name and weight, in any order and case. '#' lines and blank
/// lines are skipped. Rows of one shape become one: weights added, names joined by " + ". A line break inside
/// a quoted name is read as a space. Throws UsageError with file, line and what to change.
std::vector<ListedShape> read_shape_list(const std::filesystem::path& path);

/// The same for text in hand; `file` is what messages call it.
std::vector<ListedShape> parse_shape_list(std::string_view text, std::string_view file);

/// Header and one line a shape; parse_shape_list gives the same shapes back (duplicates merged).
std::string to_csv(std::span<const ListedShape> shapes);

}  // namespace gemmtune
