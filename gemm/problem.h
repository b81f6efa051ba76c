// What is asked for: a shape, and the class of problem that decides which compiled kernel can serve it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "gemm/dtype.h"

namespace gemmtune {

/// C[M,N] = alpha * A[M,K] x B[K,N] + beta * C. Run-time arguments of a kernel, elements.
struct Shape {
  int64_t m = 0, n = 0, k = 0;
  auto operator<=>(const Shape&) const = default;
};

/// "8192x28672x4096".
std::string to_string(const Shape& shape);

/// Accepts MxNxK with positive decimal sizes up to 2^31-1 each (TMA coordinates are signed 32-bit, PTX ISA
/// cp.async.bulk.tensor). Throws UsageError.
Shape parse_shape(std::string_view text);

/// Everything that is compiled into a kernel beside its config. C is row-major (N contiguous).
struct ProblemClass {
  DType in = DType::bf16;
  DType out = DType::bf16;
  Major a_major = Major::k;
  Major b_major = Major::k;
  bool beta = false;  ///< beta != 0: the kernel reads C. With beta = 0 it never does.
  auto operator<=>(const ProblemClass&) const = default;
};

/// Canonical text, the key in database and export: "bf16-bf16-kk", "f16-f32-mk-beta" (A's then B's
/// major-ness).
std::string to_string(const ProblemClass& problem_class);
/// Inverse of to_string. Throws UsageError.
ProblemClass parse_problem_class(std::string_view text);

struct Problem {
  ProblemClass cls;
  Shape shape;
  auto operator<=>(const Problem&) const = default;
};

inline double flop(const Shape& s) { return 2.0 * double(s.m) * double(s.n) * double(s.k); }
/// Bytes that must cross memory once: A and B read, C written (and read with beta).
double compulsory_bytes(const Problem& problem);

}  // namespace gemmtune
