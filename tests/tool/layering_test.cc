// The arrows of docs/architecture.md: which folder may include which, where CUDA, SQLite, JSON and CLI11 may
// appear, and that no include goes in a circle. Reads the sources; device code (.cu, .cuh) is text to the
// compiler and not looked at.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gemmtune {
namespace {

namespace fs = std::filesystem;

/// Folder -> folders that it may include, beside itself.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"gemm", {}},
    {"kernel_templates", {"gemm"}},
    {"search", {"kernel_templates", "gemm"}},
    {"gpu", {"search", "kernel_templates", "gemm"}},
    {"emulator", {"search", "kernel_templates", "gemm"}},
    {"db", {"search", "kernel_templates", "gemm"}},
    {"tool", {"db", "emulator", "gpu", "search", "kernel_templates", "gemm"}},
};

/// Start of a system header's name -> folders, or files of a folder, that may include it.
const std::map<std::string, std::set<std::string>> kMayUse = {
    {"sqlite3.h", {"db/"}},
    {"cuda", {"gpu/"}},
    {"nvrtc.h", {"gpu/"}},
    {"dlfcn.h", {"gpu/"}},
    {"CLI/", {"tool/"}},
    {"nlohmann/", {"gemm/model_", "search/trial_json", "gpu/", "emulator/", "db/", "tool/"}},
};

struct Include {
  std::string name;
  bool system;
  int line;
};

using Sources = std::map<std::string, std::vector<Include>>;

std::vector<Include> includes_of(std::istream& text) {
  std::vector<Include> includes;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    size_t open = line.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    size_t close = line.find_first_of("\">", open + 1);
    includes.push_back({line.substr(open + 1, close - open - 1), line[open] == '<', number});
  }
  return includes;
}

Sources read_sources() {
  Sources sources;
  fs::path root = GEMMTUNE_SOURCE_DIR;
  for (const auto& [folder, allowed] : kMayInclude) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
      std::ifstream file(entry.path());
      sources[fs::relative(entry.path(), root).generic_string()] = includes_of(file);
    }
  }
  return sources;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }

/// One line per edge that the tables forbid.
std::vector<std::string> forbidden_edges(const Sources& sources) {
  std::vector<std::string> found;
  for (const auto& [file, includes] : sources) {
    const std::string folder = folder_of(file);
    for (const Include& include : includes) {
      auto report = [&](const std::string& why) {
        found.push_back(fmt::format("{}:{}: {}: {}", file, include.line, include.name, why));
      };
      if (!include.system) {
        std::string other = folder_of(include.name);
        if (!kMayInclude.contains(other)) {
          report("includes in quotes are written from the root of the checkout");
        } else if (other != folder && !kMayInclude.at(folder).contains(other)) {
          report(fmt::format("{}/ may not include {}/", folder, other));
        }
        continue;
      }
      for (const auto& [header, places] : kMayUse) {
        if (!include.name.starts_with(header)) continue;
        bool allowed = false;
        for (const std::string& place : places) allowed = allowed || file.starts_with(place);
        if (!allowed) report("does not belong there");
      }
    }
  }
  return found;
}

/// The first circle of includes as "a.h -> b.h -> a.h", or "".
std::string circle(const Sources& sources) {
  std::map<std::string, int> state;  // 1: on the path, 2: done
  std::vector<std::string> path;
  std::string found;
  auto visit = [&](auto& self, const std::string& file) -> void {
    state[file] = 1;
    path.push_back(file);
    if (auto source = sources.find(file); source != sources.end())
      for (const Include& include : source->second) {
        if (include.system || !found.empty() || state[include.name] == 2) continue;
        if (state[include.name] == 0) {
          self(self, include.name);
          continue;
        }
        for (auto at = std::find(path.begin(), path.end(), include.name); at != path.end(); ++at)
          found += *at + " -> ";
        found += include.name;
      }
    path.pop_back();
    state[file] = 2;
  };
  for (const auto& [file, includes] : sources)
    if (state[file] == 0 && found.empty()) visit(visit, file);
  return found;
}

TEST(Layering, NoForbiddenEdge) {
  Sources sources = read_sources();
  EXPECT_GT(sources.size(), 60u) << "the sources are not where this test looks";
  size_t edges = 0;
  for (const auto& [file, includes] : sources) edges += includes.size();
  EXPECT_GT(edges, 300u);
  EXPECT_EQ(fmt::format("{}", fmt::join(forbidden_edges(sources), "\n")), "");
}

TEST(Layering, NoCircle) { EXPECT_EQ(circle(read_sources()), ""); }

/// The test's own eyes: each kind of wrong edge is seen.
TEST(Layering, SeesWhatIsForbidden) {
  auto one = [](const std::string& file, const std::string& text) {
    std::istringstream stream(text);
    return forbidden_edges({{file, includes_of(stream)}}).size();
  };
  EXPECT_EQ(one("gemm/a.h", "#include \"search/space.h\"\n"), 1u);
  EXPECT_EQ(one("gemm/a.h", "  #  include \"db/store.h\" // why\n"), 1u);
  EXPECT_EQ(one("search/a.cc", "#include \"gpu/nvrtc.h\"\n#include \"gemm/arch.h\"\n"), 1u);
  EXPECT_EQ(one("db/a.cc", "#include \"gpu/nvrtc.h\"\n"), 1u);
  EXPECT_EQ(one("gpu/a.cc", "#include \"db/store.h\"\n#include \"tool/table.h\"\n"), 2u);
  EXPECT_EQ(one("emulator/a.cc", "#include \"gpu/nvrtc.h\"\n"), 1u);
  EXPECT_EQ(one("tool/a.cc", "#include <sqlite3.h>\n#include <cuda.h>\n#include <nvrtc.h>\n"), 3u);
  EXPECT_EQ(one("search/space.cc", "#include <nlohmann/json.hpp>\n#include <cuda_runtime.h>\n"), 2u);
  EXPECT_EQ(one("tool/a.cc", "#include \"table.h\"\n"), 1u);
  EXPECT_EQ(one("tool/a.cc", "#include \"db/store.h\"\n#include <vector>\n#include <CLI/App.hpp>\n"), 0u);
  EXPECT_EQ(circle({{"a/x.h", {{"a/y.h", false, 1}}}, {"a/y.h", {{"a/x.h", false, 1}}}}),
            "a/x.h -> a/y.h -> a/x.h");
  EXPECT_EQ(circle({{"a/x.h", {{"a/z.h", false, 1}}}, {"a/y.h", {{"a/z.h", false, 1}}}}), "");
}

}  // namespace
}  // namespace gemmtune
