// The real gemmtune binary, run by a shell in a folder of the test's own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/db/fixture.h"
#include "tool/db_journal.h"

namespace gemmtune {

struct Ran {
  int status = -1;
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Commands may say `gemmtune`, $FAKE_NVRTC (tests/tool/fake_nvrtc.cc), $MODELS (tests/data/model_configs)
/// and $SOURCE (the checkout).
class Shell {
 public:
  Shell() {
    std::filesystem::create_directory(folder_ / "bin");
    std::filesystem::create_directory(folder_ / "work");
    std::filesystem::create_symlink(GEMMTUNE_BINARY, folder_ / "bin/gemmtune");
  }
  Shell(const Shell&) = delete;

  std::filesystem::path work() const { return folder_ / "work"; }
  std::string path(const std::string& name) const { return (work() / name).string(); }

  Ran run(const std::string& command) const {
    write_file(folder_ / "command",
               "PATH=" + (folder_ / "bin").string() +
                   ":$PATH\nFAKE_NVRTC=" GEMMTUNE_FAKE_NVRTC "\nMODELS=" GEMMTUNE_SOURCE_DIR
                   "/tests/data/model_configs\n"
                   "SOURCE=" GEMMTUNE_SOURCE_DIR
                   "\n"
                   "unset GEMMTUNE_NVRTC FAKE_NVRTC_ABORT FAKE_NVRTC_FAIL FAKE_NVRTC_LOG\n" +
                   command + "\n");
    std::string line = fmt::format("cd '{0}/work' && timeout 300 sh ../command </dev/null >../out 2>../err",
                                   folder_.string());
    int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), read_file(folder_ / "out"),
            read_file(folder_ / "err")};
  }

 private:
  TempFolder temp_;
  std::filesystem::path folder_ = temp_.path();
};

/// Two tuned shapes of the default class and one of another, as a sweep on an H200 would leave them, and a
/// third shape that was only compiled.
inline void make_winners(const std::string& path) {
  Store store(path);
  int64_t device = store.device_id(h200());
  auto config = [](const char* stages, const char* tile_n) {
    const std::vector<Knob>& knobs = find_family("sm90_gemm")->knobs();
    return to_text(knobs, parse_config(knobs, fmt::format("stages={},tile_n={}", stages, tile_n)));
  };
  auto add = [&](const Problem& p, const std::string& text, double us) {
    Trial trial = ok_trial(p, text, {us, us * 1.001, us * 0.999});
    store.record_trial(trial, device);
  };
  add(problem(4096, 4096, 4096), config("4", "128"), 200);
  add(problem(4096, 4096, 4096), config("5", "128"), 250);
  add(problem(128, 8192, 8192), config("6", "64"), 25.5);
  Problem other = problem(4096, 4096, 4096);
  other.cls.in = other.cls.out = DType::f16;
  add(other, config("3", "256"), 190);
  store.record_trial(failed_trial(problem(1, 4096, 4096), config("4", "128"), Outcome::compile_failed),
                     device);
  refresh_winners(store, knobs_away_from_default);
}

/// Whether `text` matches; "{*}" stands for anything, also for nothing.
inline bool matches(std::string_view pattern, std::string_view text) {
  size_t wild = pattern.find("{*}");
  if (wild == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, wild))) return false;
  std::string_view rest = pattern.substr(wild + 3);
  for (size_t at = wild; at <= text.size(); ++at)
    if (matches(rest, text.substr(at))) return true;
  return false;
}

}  // namespace gemmtune
