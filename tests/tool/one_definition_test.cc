// A type's name is defined once in a namespace. The linker joins two classes of one name without a word, each
// with the other's constructors; no compiler warning sees it, since no source includes both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gemmtune {
namespace {

namespace fs = std::filesystem;

/// "Three" of "struct Three final : Base {"; empty if the line does not define a type in its first column.
/// "struct A::B {" is none: A's header declares it. Neither is a specialization.
std::string type_in(std::string_view line) {
  for (std::string_view keyword : {"struct ", "class ", "union ", "enum class ", "enum "}) {
    if (!line.starts_with(keyword)) continue;
    line.remove_prefix(keyword.size());
    size_t end = 0;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_'))
      ++end;
    std::string_view rest = line.substr(end);
    bool ends = rest.starts_with(' ') || (rest.starts_with(':') && !rest.starts_with("::"));
    return ends && rest.find('{') != std::string_view::npos ? std::string(line.substr(0, end)) : "";
  }
  return "";
}

/// Qualified names of the types that a text defines outside unnamed namespaces. Relies on clang-format:
/// namespaces open in a line's first column and close with a comment.
std::set<std::string> types_of(std::istream& text) {
  constexpr std::string_view opens = "namespace ", closes = "}  // namespace";
  std::vector<std::string> inside;
  std::set<std::string> found;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(opens) && line.ends_with('{')) {
      line.pop_back();
      std::string name = line.substr(opens.size());
      if (name.ends_with(' ')) name.pop_back();
      inside.push_back(std::move(name));
    } else if (line.starts_with(closes)) {
      if (!inside.empty()) inside.pop_back();
    } else if (std::string type = type_in(line); !type.empty()) {
      bool unnamed = std::ranges::find(inside, "") != inside.end();
      if (!unnamed) found.insert(fmt::format("{}::{}", fmt::join(inside, "::"), type));
    }
  }
  return found;
}

using Definitions = std::map<std::string, std::vector<std::string>>;  ///< type -> files

std::string repeated(const Definitions& definitions) {
  std::string found;
  for (const auto& [type, files] : definitions)
    if (files.size() > 1) found += fmt::format("{}: {}\n", type, fmt::join(files, ", "));
  return found;
}

TEST(OneDefinition, OfEachType) {
  Definitions definitions;
  fs::path root = GEMMTUNE_SOURCE_DIR;
  for (const char* folder : {"gemm", "kernel_templates", "search", "gpu", "emulator", "db", "tool", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
      std::ifstream file(entry.path());
      std::string path = fs::relative(entry.path(), root).generic_string();
      for (const std::string& type : types_of(file)) definitions[type].push_back(path);
    }
  EXPECT_GT(definitions.size(), 200u) << "the sources are not where this test looks";
  EXPECT_EQ(repeated(definitions), "");
}

TEST(OneDefinition, SeesTwo) {
  Definitions definitions;
  auto read = [&](const std::string& path, const std::string& text) {
    std::istringstream stream(text);
    for (const std::string& type : types_of(stream)) definitions[type].push_back(path);
  };
  read("a.h",
       "namespace gemmtune {\nstruct One {\n};\nclass Two final : public Base {\n};\nstruct Three;\n"
       "namespace {\nstruct Four {};\n}  // namespace\n}  // namespace gemmtune\n");
  EXPECT_EQ(repeated(definitions), "");
  read("b.cc",
       "namespace gemmtune {\nenum class One {\n};\nstruct Three {};\nstruct Four {};\n"
       "struct Two::Inner {\n};\n}  // namespace gemmtune\n");
  EXPECT_EQ(repeated(definitions), "gemmtune::One: a.h, b.cc\n");
  read("c.h",
       "namespace gemmtune {\nclass Two {\n};\n}  // namespace gemmtune\n"
       "namespace gemmtune::emulator {\nstruct One {};\n}  // namespace gemmtune::emulator\n");
  EXPECT_EQ(repeated(definitions), "gemmtune::One: a.h, b.cc\ngemmtune::Two: a.h, c.h\n");
}

}  // namespace
}  // namespace gemmtune
