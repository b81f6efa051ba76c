#include "kernel_templates/tma_operand.h"

#include <fmt/format.h>

#include <algorithm>

namespace gemmtune {
namespace {

char letter(Operand operand) { return operand == Operand::a ? 'A' : 'B'; }
char mn_letter(Operand operand) { return operand == Operand::a ? 'M' : 'N'; }

}  // namespace

std::string tile_violation(const OperandTileSpec& t) {
  int contiguous_bytes = t.contiguous() * 2;
  if (contiguous_bytes % t.span_bytes != 0)
    return fmt::format(
        "{} is {}-major: its tile is {} elements = {} bytes long, not a multiple of the {}-byte {}",
        letter(t.operand), t.major == Major::k ? 'K' : mn_letter(t.operand), t.contiguous(), contiguous_bytes,
        t.span_bytes, t.span_bytes == 16 ? "row of the unswizzled layout" : "swizzle span");
  if (t.major == Major::k) {
    if (t.rows % (8 * t.sharers) != 0)
      return fmt::format("{} {} rows cannot be cut into {} multicast slices of whole 8-row swizzle patterns",
                         letter(t.operand), t.rows, t.sharers);
  } else if (t.chunks() % t.sharers != 0) {
    return fmt::format("{}'s {} copies of {} bytes cannot be shared by {} CTAs", letter(t.operand),
                       t.chunks(), t.span_bytes, t.sharers);
  }
  return "";
}

std::string alignment_violation(const ProblemClass& cls, const Shape& s) {
  auto check = [&](char operand, Major major, char mn_name, int64_t mn) -> std::string {
    int64_t contiguous = major == Major::k ? s.k : mn;
    if (contiguous * 2 % 16 == 0) return "";
    return fmt::format(
        "{} = {}: rows of {} are {} bytes apart, TMA needs a multiple of 16 (make {} a multiple of 8)",
        major == Major::k ? 'K' : mn_name, contiguous, operand, contiguous * 2,
        major == Major::k ? 'K' : mn_name);
  };
  std::string a = check('A', cls.a_major, 'M', s.m);
  return a.empty() ? check('B', cls.b_major, 'N', s.n) : a;
}

std::string size_violation(const Shape& s, int64_t rows, int64_t columns, int cluster_size) {
  constexpr int64_t kMax = (int64_t{1} << 31) - 1;
  int64_t m = tiles(s.m, rows) * rows, n = tiles(s.n, columns) * columns;
  if (m > kMax || n > kMax)
    return fmt::format("{} = {} in tiles of {} ends beyond coordinate {}", m > kMax ? 'M' : 'N',
                       m > kMax ? s.m : s.n, m > kMax ? rows : columns, kMax);
  int64_t clusters = tiles(s.m, rows) * tiles(s.n, columns);  // each factor is below 2^31
  if (clusters > kMax / cluster_size)
    return fmt::format("{} clusters of {} CTAs > {}, the largest grid", clusters, cluster_size, kMax);
  return "";
}

TensorMapSpec tensor_map(const OperandTileSpec& t, DType type, int64_t mn, int64_t k) {
  TensorMapSpec map;
  map.operand = t.operand;
  map.type = type;
  map.rank = 2;
  map.swizzle = t.span_bytes == 128  ? Swizzle::b128
                : t.span_bytes == 64 ? Swizzle::b64
                : t.span_bytes == 32 ? Swizzle::b32
                                     : Swizzle::none;
  uint32_t span = static_cast<uint32_t>(t.span_bytes / 2);
  if (t.major == Major::k) {
    map.dims = {static_cast<uint64_t>(k), static_cast<uint64_t>(mn)};
    map.box = {span, static_cast<uint32_t>(t.rows / t.sharers)};
  } else {
    map.dims = {static_cast<uint64_t>(mn), static_cast<uint64_t>(k)};
    map.box = {span, static_cast<uint32_t>(t.depth)};
  }
  map.strides_bytes = {map.dims[0] * 2};
  return map;
}

std::string bytes_text(int64_t bytes) {
  return bytes % 1024 == 0 ? fmt::format("{} KiB", bytes / 1024) : fmt::format("{} bytes", bytes);
}

std::string smem_violation(int stages, int stage_bytes, int fixed_bytes, const ArchSpec& arch) {
  int64_t ring = int64_t{stages} * stage_bytes;
  int64_t total = ring + fixed_bytes;
  if (total <= arch.smem_per_block_bytes) return "";
  std::string text = fmt::format("{} stages x {} = {}", stages, bytes_text(stage_bytes), bytes_text(ring));
  if (ring <= arch.smem_per_block_bytes)
    text += fmt::format(" + {} bytes of barriers = {} bytes", fixed_bytes, total);
  return text + fmt::format(" > {} of shared memory", bytes_text(arch.smem_per_block_bytes));
}

uint32_t grid_ctas(int64_t clusters, int cluster_size, bool persistent, const LaunchDevice& device) {
  if (persistent) {
    int64_t resident = device.max_active_clusters > 0 ? device.max_active_clusters
                                                      : std::max(1, device.sm_count / cluster_size);
    clusters = std::min(clusters, resident);
  }
  return static_cast<uint32_t>(clusters * cluster_size);
}

Knob stages_knob(std::vector<int> values, int default_value) {
  return {"stages", std::move(values), default_value, "depth of the shared-memory ring", {}, true};
}

Knob swizzle_knob(std::string_view operand) {
  return {fmt::format("swizzle_{}", operand),
          {16, 32, 64, 128},
          128,
          fmt::format("shared-memory swizzle of {}", operand == "a" ? "A" : "B"),
          {"none", "32B", "64B", "128B"},
          true};
}

Knob cluster_knob(std::string_view dimension) {
  bool m = dimension == "m";
  return {fmt::format("cluster_{}", dimension),
          {1, 2, 4, 8},
          1,
          fmt::format("CTAs of a cluster along {}; they share {} tiles by multicast", m ? "M" : "N",
                      m ? "B" : "A"),
          {},
          true};
}

}  // namespace gemmtune
