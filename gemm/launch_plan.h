// How a compiled kernel is launched for one shape, in terms that neither CUDA nor the emulator own: the GPU
// executor and the emulator both turn this into a real launch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gemm/dtype.h"

namespace gemmtune {

/// The buffers of a launch: D = alpha * A x B + beta * C. `c` may be the same memory as `d`; it is read only
/// with beta != 0. `workspace` belongs to the kernel alone.
enum class Operand { a, b, c, d, workspace };

/// Shared-memory swizzle of a tensor map; values are CUtensorMapSwizzle's (cuda.h).
enum class Swizzle { none = 0, b32 = 1, b64 = 2, b128 = 3 };
constexpr int span_bytes(Swizzle s) { return s == Swizzle::none ? 16 : 16 << static_cast<int>(s); }

/// Arguments of cuTensorMapEncodeTiled. Index 0 is the innermost (contiguous) dimension.
struct TensorMapSpec {
  Operand operand = Operand::a;
  DType type = DType::bf16;
  int rank = 2;
  std::array<uint64_t, 5> dims{};           ///< elements
  std::array<uint64_t, 4> strides_bytes{};  ///< of dimensions 1..rank-1
  std::array<uint32_t, 5> box{};            ///< elements
  Swizzle swizzle = Swizzle::none;
};

struct PointerArg {
  Operand operand;
};

/// One kernel parameter in declaration order. A tensor map is passed by value (128 bytes, 64-byte aligned).
using KernelArg = std::variant<TensorMapSpec, PointerArg, int32_t, int64_t, float>;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
};

struct LaunchPlan {
  Dim3 grid, block, cluster;
  /// Larger clusters to form where the device has room for them: a multiple of `cluster` that divides `grid`
  /// (CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION).
  std::optional<Dim3> preferred_cluster;
  /// It may start before the launch ahead of it in the stream has ended: the kernel waits by itself
  /// (CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).
  bool programmatic = false;
  int dynamic_smem_bytes = 0;
  int64_t workspace_bytes = 0;
  std::vector<KernelArg> args;
};

}  // namespace gemmtune
