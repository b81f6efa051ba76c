// Truncated and damaged PTX: an error or a diagnosis, never a crash. The full search is the fuzz target's
// work; this is the quick part, with fixed seeds.
#include <gtest/gtest.h>

#include "tests/emulator/gemm_runner.h"

namespace gemmtune::emulator {
namespace {

/// Loads, and runs what loads: whatever happens is data.
void try_text(const std::string& text, bool sm90, uint32_t group) {
  try {
    Module module(text);
    GemmCase g = sm90 ? sm90_case() : sm100_case(group);
    g.ptx = text;
    g.m = sm90 ? 64 : 128 * group;
    g.n = sm90 ? 64 : 128;
    g.k = 128;
    g.instruction_limit = 30'000;
    if (module.kernels().empty() || module.kernels()[0] != "gemm") return;
    const Function& f = *module.program().find_entry("gemm");
    if (f.params.size() != (sm90 ? 4u : 5u) || f.params[0].bytes != 128 || f.params[1].bytes != 128) return;
    if (sm90 && (f.params[2].bytes != 128 || f.params[3].bytes != 4)) return;
    if (!sm90 && (f.params[2].bytes != 8 || f.params[3].bytes != 4 || f.params[4].bytes != 4)) return;
    run_gemm(g);
  } catch (const PtxError&) {
  }
}

struct Source {
  const char* file;
  bool sm90;
  uint32_t group;
};
constexpr Source kSources[] = {
    {"sm100_gemm_cg1.ptx", false, 1}, {"sm100_gemm_cg2.ptx", false, 2}, {"sm90_gemm.ptx", true, 1}};

TEST(BadInput, Truncated) {
  for (const Source& s : kSources) {
    std::string text = read_text(s.file);
    for (size_t i = 0; i < 120; ++i) try_text(text.substr(0, text.size() * i / 120), s.sm90, s.group);
  }
}

TEST(BadInput, DamagedBytes) {
  std::mt19937 random(11);
  for (const Source& s : kSources) {
    const std::string text = read_text(s.file);
    for (int i = 0; i < 150; ++i) {
      std::string bad = text;
      for (uint32_t n = 1 + random() % 3; n; --n)
        bad[random() % bad.size()] = static_cast<char>(random() % 127 + 1);
      try_text(bad, s.sm90, s.group);
    }
  }
}

// Whole words swapped for others of the same text: more of these load and then misbehave.
TEST(BadInput, SwappedWords) {
  std::mt19937 random(12);
  for (const Source& s : kSources) {
    const std::string text = read_text(s.file);
    std::vector<std::pair<size_t, size_t>> words;
    for (size_t i = 0; i < text.size();) {
      size_t j = i;
      while (j < text.size() && (std::isalnum(static_cast<unsigned char>(text[j])) || text[j] == '%')) ++j;
      if (j > i) words.emplace_back(i, j - i);
      i = std::max(j, i + 1);
    }
    for (int i = 0; i < 250; ++i) {
      auto to = words[random() % words.size()], from = words[random() % words.size()];
      std::string bad = text;
      bad.replace(to.first, to.second, text.substr(from.first, from.second));
      try_text(bad, s.sm90, s.group);
    }
  }
}

TEST(BadInput, Nonsense) {
  for (const char* text :
       {"", ";", "{", "}", ".version", ".version 9.0 .target sm_100a .entry", "\"", "/*",
        ".target sm_90a\n.entry f() {", ".target sm_90a .entry f() { @p bra x; }",
        ".target sm_90a .global .b8 x[99999999999];", ".target sm_90a .global .b8 x[268435457];",
        ".target sm_90a .func f() { call f; ret; }",
        ".target sm_90a .entry f() { .reg .b32 %r<4294967295>; }", ".target sm_90a .global .u64 x = y;",
        ".target sm_90a .entry f() { ret; ret; } .entry f() { ret; }",
        ".target sm_90a .entry f() { .reg .b32 a; mov.b32 a, {a, a, a}; }",
        ".target sm_90a .entry f() { .reg .b32 a; mov.u32 a, %tid.w; }"}) {
    try {
      Module module(text);
    } catch (const PtxError&) {
    }
  }
}

}  // namespace
}  // namespace gemmtune::emulator
