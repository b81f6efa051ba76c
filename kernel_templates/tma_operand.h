// What both families share on the host: the operand tile that device/operand_tile.cuh lays out, its tensor
// map, and the constraints that follow from it.
#pragma once

#include <string>
#include <vector>

#include "kernel_templates/family.h"

namespace gemmtune {

/// Host twin of OperandTile<kRows, kDepth, kMnMajor, kSpan> with its multicast sharers.
struct OperandTileSpec {
  Operand operand = Operand::a;
  int rows = 0;   ///< elements along M or N in one CTA
  int depth = 0;  ///< elements along K
  Major major = Major::k;
  int span_bytes = 0;  ///< 16 (no swizzle), 32, 64, 128
  int sharers = 1;     ///< CTAs that fetch slices of the same tile and multicast them

  int contiguous() const { return major == Major::k ? depth : rows; }
  int bytes() const { return rows * depth * 2; }
  int stride_bytes() const { return (bytes() + 1023) / 1024 * 1024; }
  int chunks() const { return contiguous() * 2 / span_bytes; }
  /// Copies that one CTA issues a stage.
  int copies() const { return major == Major::k ? chunks() : chunks() / sharers; }
};

/// "" or why this tile cannot be copied and read: spans that do not divide it, slices that break the swizzle
/// pattern.
std::string tile_violation(const OperandTileSpec& tile);

/// "" or why TMA cannot address an operand of this shape: row pitches are multiples of 16 bytes (PTX ISA,
/// cuda.h cuTensorMapEncodeTiled globalStrides).
std::string alignment_violation(const ProblemClass& cls, const Shape& shape);

/// "" or why a shape is too large for this cluster tile: coordinates are signed 32-bit (PTX ISA
/// cp.async.bulk.tensor), a grid holds 2^31 - 1 CTAs (CUDA programming guide, technical specifications).
std::string size_violation(const Shape& shape, int64_t cluster_rows, int64_t cluster_columns,
                           int cluster_size);

/// `mn` x `k`: the operand's global size in elements.
TensorMapSpec tensor_map(const OperandTileSpec& tile, DType type, int64_t mn, int64_t k);

/// "6 stages x 48 KiB = 288 KiB > 227 KiB of shared memory", or "".
std::string smem_violation(int stages, int stage_bytes, int fixed_bytes, const ArchSpec& arch);

/// Tiles that one dimension needs.
inline int64_t tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

/// CTAs along x for `clusters` output tiles: all of them, or what is resident at once when persistent.
uint32_t grid_ctas(int64_t clusters, int cluster_size, bool persistent, const LaunchDevice& device);

/// "64 KiB", "1536 bytes".
std::string bytes_text(int64_t bytes);

/// The knobs that both families have in common, in one wording.
Knob stages_knob(std::vector<int> values, int default_value);
Knob swizzle_knob(std::string_view operand);
Knob cluster_knob(std::string_view dimension);

}  // namespace gemmtune
