// A launch described in JSON: what `gemmtune emulate kernel.ptx --launch FILE` runs (docs/commands.md has the
// format). Plain data; the parser checks types, names and ranges, the runner what depends on the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/scalar_type.h"
#include "emulator/tensor_map.h"
#include "gemm/launch_plan.h"

namespace gemmtune::emulator {

struct BufferFill {
  enum class Kind : uint8_t { unset, zeros, iota, integers, normal, values, file };
  Kind kind = Kind::unset;    ///< unset: 0xff bytes, NaN in every floating type
  int64_t low = 0, high = 0;  ///< integers: uniform in [low, high]
  uint64_t seed = 1;
  std::vector<double> values;  ///< repeated to the end
  std::string path;            ///< raw bytes
};

/// What a buffer must hold after the launch.
struct Expectation {
  enum class Kind : uint8_t { none, values, file, gemm };
  Kind kind = Kind::none;
  std::vector<double> values;  ///< repeated to the end
  std::string path;
  std::string a, b, c;  ///< gemm: buffers; c may be empty
  bool a_is_k_major = true, b_is_k_major = true;
  float alpha = 1, beta = 0;
  double tolerance = 0;  ///< allowed |difference|; 0: the value rounded to the type, exactly
};

struct BufferSpec {
  std::string name;
  ScalarType type = ScalarType::f32;
  std::vector<int64_t> shape;  ///< elements, the contiguous dimension last
  BufferFill fill;
  Expectation expect;
  std::string dump;  ///< file for the raw bytes after the launch; empty: none
  int64_t elements() const;
  size_t bytes() const;
};

/// TensorMap::address is left to the runner.
struct TensorMapEntry {
  std::string name, buffer;
  uint64_t offset_bytes = 0;
  TensorMap map;
};

/// One value inside a kernel parameter.
struct ParamValue {
  enum class Kind : uint8_t { bytes, buffer, tensor_map, tensor_map_pointer };
  Kind kind = Kind::bytes;
  std::string name;                 ///< of the buffer or map
  uint64_t offset_bytes = 0;        ///< buffer: added to its address
  std::vector<uint8_t> bytes;       ///< scalars, little endian
  std::optional<uint32_t> at_byte;  ///< place inside the parameter; default: behind the value before
};

struct LaunchFile {
  std::string kernel;  ///< empty: the only one
  Dim3 grid, block, cluster{0, 0, 0};
  std::optional<Dim3> preferred_cluster;
  uint32_t dynamic_smem_bytes = 0;
  int sm_count = 148;
  std::vector<BufferSpec> buffers;
  std::vector<TensorMapEntry> tensor_maps;
  std::vector<std::vector<ParamValue>> params;  ///< in the kernel's order
};

/// `source` names the text in messages. Throws UsageError: "launch.json: buffers.a.type: unknown 'f17' (did
/// you mean 'f16'?)".
LaunchFile parse_launch_file(std::string_view text, const std::string& source);

}  // namespace gemmtune::emulator
