// The C++17 header: a constexpr table, an exact and a nearest lookup, provenance in comments. Nothing of
// gemmtune is needed to use it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "db/export.h"
#include "db/queries.h"
#include "db/record_json.h"

namespace gemmtune {
namespace {

/// Everything but the table; {} of the template are filled by to_header.
constexpr std::string_view kTypes = R"(#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmtune_winners {

enum class DType { f16, bf16, f32 };
/// Which dimension of an operand is contiguous: K, or the other one (M of A, N of B).
enum class Major { k, mn };
/// burst: short batches with pauses. sustained: after 0.7 s of load, where the power cap holds the clock down.
enum class Regime { burst, sustained };

/// A knob that the winner's kernel family does not have.
inline constexpr int kAbsent = -2147483647;

)";

constexpr std::string_view kWinner = R"(
struct Winner {
  const char* arch;  // exact compile target, "sm_100a"
  DType in, out;     // A and B; C
  Major a_major, b_major;
  bool beta;  // tuned and validated with beta != 0 (C is read)
  std::int64_t m, n, k;
  const char* family;  // kernel template
  Knobs knobs;
  const char* config;  // the same knobs as text, for gemmtune
  double median_us;    // measured on `device`
  double tflops;
  const char* device;
  Regime regime;
};

)";

constexpr std::string_view kLookup = R"(
/// How well a lookup matched.
enum class Match {
  exact,      // this very shape was tuned
  nearest_m,  // same arch, types, layout, beta, N and K, but another M: a guess, not a measurement
  none,       // nothing that may stand for it
};

struct Nearest {
  Match match;
  const Winner* winner;  // nullptr with Match::none
};

namespace detail {
constexpr bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}
constexpr bool same_but_m(const Winner& w, const char* arch, DType in, DType out, Major a_major, Major b_major, bool beta,
                          std::int64_t n, std::int64_t k) {
  return w.n == n && w.k == k && w.in == in && w.out == out && w.a_major == a_major && w.b_major == b_major &&
         w.beta == beta && same_text(w.arch, arch);
}
/// Distance of two sizes as their ratio, 1 or more.
constexpr double ratio(std::int64_t a, std::int64_t b) {
  return a > b ? static_cast<double>(a) / static_cast<double>(b) : static_cast<double>(b) / static_cast<double>(a);
}
}  // namespace detail

/// The winner of exactly this problem, or nullptr.
constexpr const Winner* find(const char* arch, DType in, DType out, Major a_major, Major b_major, bool beta,
                             std::int64_t m, std::int64_t n, std::int64_t k) {
  for (std::size_t i = 0; i < kWinnerCount; ++i)
    if (kWinners[i].m == m && detail::same_but_m(kWinners[i], arch, in, out, a_major, b_major, beta, n, k))
      return &kWinners[i];
  return nullptr;
}

/// The exact winner or, failing that, the one whose M is nearest by ratio (the larger of two equally near) with all
/// else equal. Read `match` before you trust it.
constexpr Nearest nearest(const char* arch, DType in, DType out, Major a_major, Major b_major, bool beta,
                          std::int64_t m, std::int64_t n, std::int64_t k) {
  if (const Winner* exact = find(arch, in, out, a_major, b_major, beta, m, n, k)) return {Match::exact, exact};
  const Winner* best = nullptr;
  for (std::size_t i = 0; m > 0 && i < kWinnerCount; ++i) {
    if (!detail::same_but_m(kWinners[i], arch, in, out, a_major, b_major, beta, n, k)) continue;
    if (best == nullptr || detail::ratio(kWinners[i].m, m) < detail::ratio(best->m, m) ||
        (detail::ratio(kWinners[i].m, m) <= detail::ratio(best->m, m) && kWinners[i].m > best->m))
      best = &kWinners[i];
  }
  return {best == nullptr ? Match::none : Match::nearest_m, best};
}

}  // namespace gemmtune_winners
)";

constexpr std::string_view kKeywords[] = {
    "alignas",     "alignof",  "and",        "and_eq",    "asm",       "auto",         "bitand",
    "bitor",       "bool",     "break",      "case",      "catch",     "char",         "char16_t",
    "char32_t",    "char8_t",  "class",      "co_await",  "co_return", "co_yield",     "compl",
    "concept",     "const",    "const_cast", "consteval", "constexpr", "constinit",    "continue",
    "decltype",    "default",  "delete",     "do",        "double",    "dynamic_cast", "else",
    "enum",        "explicit", "export",     "extern",    "false",     "float",        "for",
    "friend",      "goto",     "if",         "inline",    "int",       "long",         "mutable",
    "namespace",   "new",      "noexcept",   "not",       "not_eq",    "nullptr",      "operator",
    "or",          "or_eq",    "private",    "protected", "public",    "register",     "reinterpret_cast",
    "requires",    "return",   "short",      "signed",    "sizeof",    "static",       "static_assert",
    "static_cast", "struct",   "switch",     "template",  "this",      "thread_local", "throw",
    "true",        "try",      "typedef",    "typeid",    "typename",  "union",        "unsigned",
    "using",       "virtual",  "void",       "volatile",  "wchar_t",   "while",        "xor",
    "xor_eq"};

/// A valid field name: other characters become '_', which also goes before a leading digit and behind a
/// keyword.
std::string identifier(std::string_view text) {
  std::string name;
  for (char c : text) {
    bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += allowed ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "knob_" + name;
  if (std::ranges::find(kKeywords, name) != std::end(kKeywords)) name += '_';
  return name;
}

/// A string literal. '?' is escaped because of trigraphs; octal escapes end after three digits, hexadecimal
/// ones do not.
std::string literal(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\{:03o}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

/// Text inside a // comment: one line, no backslash that could continue it, no trigraph.
std::string comment(std::string_view text) {
  std::string safe;
  for (char c : text) safe += static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == '?' ? '_' : c;
  return safe;
}

std::string real(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

struct Field {
  std::string knob, name, comment;
};

bool parse_whole(std::string_view text, int& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// The integer behind a knob's text: the word's value as the family declares it, or the number itself.
std::optional<int> knob_value(const std::vector<Knob>* declared, const std::string& knob,
                              const std::string& text) {
  if (declared) {
    for (const Knob& k : *declared) {
      if (k.name != knob) continue;
      for (int value : k.values)
        if (value_text(k, value) == text) return value;
    }
  }
  int value = 0;
  return parse_whole(text, value) ? std::optional(value) : std::nullopt;
}

std::string field_comment(const Knob& knob) {
  std::string text = knob.meaning;
  if (!knob.words.empty()) {
    std::vector<std::string> spelled;
    for (int value : knob.values) spelled.push_back(fmt::format("{} = {}", value, value_text(knob, value)));
    text += fmt::format(" ({})", fmt::join(spelled, ", "));
  }
  return comment(text);
}

/// Every knob of the families in the table: as declared, then those that only stored configs still name.
std::vector<Field> fields(std::span<const ExportRow> rows, const KnobsOf& knobs_of) {
  std::vector<Field> result;
  std::set<std::string> knobs, names;
  auto add = [&](const std::string& knob, const std::string& text) {
    if (!knobs.insert(knob).second) return;
    std::string name = identifier(knob);
    while (!names.insert(name).second) name += '_';
    result.push_back({knob, name, text});
  };
  for (const ExportRow& row : rows) {
    const std::vector<Knob>* declared = knobs_of(row.family);
    if (declared)
      for (const Knob& knob : *declared) add(knob.name, field_comment(knob));
    for (const auto& [knob, value] : config_items(row.config))
      if (knob_value(declared, knob, value)) add(knob, "not declared by this version of gemmtune");
  }
  return result;
}

std::string entry(const ExportRow& r, const std::vector<Field>& fields, const KnobsOf& knobs_of) {
  const std::vector<Knob>* declared = knobs_of(r.family);
  std::map<std::string, std::optional<int>> values;
  if (declared)
    for (const Knob& knob : *declared)
      values[knob.name] = knob.default_value;  // the config is older than the knob
  for (const auto& [knob, text] : config_items(r.config)) {
    values[knob] = knob_value(declared, knob, text);
    if (declared && !values[knob])
      throw EnvironmentError(
          fmt::format("winner of {}: knob {} has a value '{}' that this gemmtune does not know; tune "
                      "the shape again",
                      to_string(r.problem.shape), knob, text));
  }
  std::vector<std::string> knobs;
  for (const Field& field : fields) {
    auto found = values.find(field.knob);
    bool present = found != values.end() && found->second;
    knobs.push_back(present ? std::to_string(*found->second) : "kAbsent");
  }
  const ProblemClass& c = r.problem.cls;
  auto major = [](Major m) { return m == Major::k ? "Major::k" : "Major::mn"; };
  std::string interval = r.ratio_low > 0
                             ? fmt::format("the next one outside takes {:.3f} to {:.3f} times as long (95 %)",
                                           r.ratio_low, r.ratio_high)
                             : "no other outside";
  std::string launches;
  if (r.launch_cost && r.launch_cost->launch_bound)
    launches = fmt::format(" | launch-bound: {:.2f} us in a CUDA graph", r.launch_cost->graph_us);
  return fmt::format(
      "    // {} | driver {} | {} | {} {}, {} L2 | {} | tie set of {}, {}{}\n    // {}\n"
      "    {{{}, DType::{}, DType::{}, {}, {}, {}, {}, {}, {},\n     {}, {{{}}},\n     {},\n     {}, {}, {}, "
      "Regime::{}}},\n",
      comment(r.device.name), comment(r.device.driver_version), comment(r.toolchain), comment(r.protocol),
      name(r.regime), r.warm_l2 ? "warm" : "cold", r.measured_at, r.tie_set, interval, launches,
      comment(r.evidence), literal(r.arch), name(c.in), name(c.out), major(c.a_major), major(c.b_major),
      c.beta, r.problem.shape.m, r.problem.shape.n, r.problem.shape.k, literal(r.family),
      fmt::join(knobs, ", "), literal(r.config), real(r.median_us),
      real(tflops(r.problem.shape, r.median_us)), literal(r.device.name), name(r.regime));
}

}  // namespace

std::string to_header(std::span<const ExportRow> rows, const Provenance& provenance,
                      const KnobsOf& knobs_of) {
  std::string text = fmt::format(
      "// GEMM configurations tuned by gemmtune {}: generated, do not edit.\n"
      "// Database {}, exported {}. C[M,N] = alpha * A[M,K] x B[K,N] + beta * C, accumulation in f32.\n"
      "// Every time was measured on the named device, and every kernel validated, as the line above its "
      "entry says.\n",
      comment(provenance.tool_version), comment(provenance.database), comment(provenance.exported_at));
  text += kTypes;
  text += "/// Knob values; words are numbered as each line says.\nstruct Knobs {\n";
  const std::vector<Field> all = fields(rows, knobs_of);
  for (const Field& field : all) text += fmt::format("  int {};  // {}\n", field.name, field.comment);
  text += "};\n";
  text += kWinner;
  text += fmt::format("inline constexpr std::size_t kWinnerCount = {};\n", rows.size());
  if (rows.empty()) {
    text +=
        "/// C++ has no array of no elements; kWinnerCount says how many are valid.\n"
        "inline constexpr Winner kWinners[1] = {};\n";
  } else {
    text += "inline constexpr Winner kWinners[kWinnerCount] = {\n";
    for (const ExportRow& row : rows) text += entry(row, all, knobs_of);
    text += "};\n";
  }
  text += kLookup;
  return text;
}

}  // namespace gemmtune
