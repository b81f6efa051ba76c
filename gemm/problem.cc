#include "gemm/problem.h"

#include <fmt/format.h>

#include <charconv>

#include "gemm/error.h"

namespace gemmtune {
namespace {

constexpr int64_t kMaxSize = (int64_t{1} << 31) - 1;

char letter(Major major, char other) { return major == Major::k ? 'k' : other; }

}  // namespace

std::string to_string(const Shape& s) { return fmt::format("{}x{}x{}", s.m, s.n, s.k); }

Shape parse_shape(std::string_view text) {
  int64_t sizes[3] = {};
  std::string_view rest = text;
  for (int i = 0; i < 3; ++i) {
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), sizes[i]);
    bool last = i == 2;
    bool ended = end == rest.data() + rest.size();
    if (error == std::errc::result_out_of_range || (error == std::errc() && sizes[i] > kMaxSize))
      throw UsageError(fmt::format("shape '{}': {} is larger than 2147483647", text, "MNK"[i]));
    if (error != std::errc() || (last ? !ended : (ended || *end != 'x')))
      throw UsageError(fmt::format("shape '{}': expected MxNxK, for example 4096x4096x4096", text));
    if (sizes[i] <= 0) throw UsageError(fmt::format("shape '{}': {} must be positive", text, "MNK"[i]));
    if (!last) rest.remove_prefix(static_cast<size_t>(end - rest.data()) + 1);
  }
  return {sizes[0], sizes[1], sizes[2]};
}

std::string to_string(const ProblemClass& c) {
  return fmt::format("{}-{}-{}{}{}", name(c.in), name(c.out), letter(c.a_major, 'm'), letter(c.b_major, 'n'),
                     c.beta ? "-beta" : "");
}

ProblemClass parse_problem_class(std::string_view text) {
  auto malformed = [&] {
    return UsageError(
        fmt::format("problem class '{}': expected IN-OUT-MAJORS[-beta], such as bf16-bf16-kk", text));
  };
  ProblemClass result;
  std::string_view rest = text;
  auto take = [&] {
    size_t dash = rest.find('-');
    std::string_view part = rest.substr(0, dash);
    rest = dash == std::string_view::npos ? std::string_view() : rest.substr(dash + 1);
    return part;
  };
  result.in = parse_dtype(take());
  result.out = parse_dtype(take());
  std::string_view majors = take();
  if (majors.size() != 2 || (majors[0] != 'k' && majors[0] != 'm') || (majors[1] != 'k' && majors[1] != 'n'))
    throw malformed();
  result.a_major = majors[0] == 'k' ? Major::k : Major::mn;
  result.b_major = majors[1] == 'k' ? Major::k : Major::mn;
  if (rest == "beta") {
    result.beta = true;
  } else if (!rest.empty()) {
    throw malformed();
  }
  return result;
}

double compulsory_bytes(const Problem& p) {
  double m = double(p.shape.m), n = double(p.shape.n), k = double(p.shape.k);
  double c_passes = p.cls.beta ? 2.0 : 1.0;
  return (m * k + n * k) * size_bytes(p.cls.in) + c_passes * m * n * size_bytes(p.cls.out);
}

}  // namespace gemmtune
