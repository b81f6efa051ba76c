#include "search/proxy_shapes.h"

#include <algorithm>

namespace gemmtune {

std::vector<Shape> proxy_shapes(const TileShape& t, const ProblemClass& cls, int sm_count) {
  // A dimension that is contiguous in an operand comes in multiples of 8 elements (16 bytes); others may be
  // odd.
  int64_t odd_m = cls.a_major == Major::k ? 3 : 8;
  int64_t odd_n = cls.b_major == Major::k ? 5 : 8;
  if (t.n_multiple > 1) odd_n = std::max<int64_t>(t.n_multiple, cls.b_major == Major::k ? 0 : 8);
  int64_t odd_k = cls.a_major == Major::mn && cls.b_major == Major::mn ? 5 : 8;
  int64_t cluster_rows = int64_t{t.tile_m} * t.cluster_m, cluster_columns = int64_t{t.tile_n} * t.cluster_n;
  int64_t laps = int64_t{t.tile_k} * (2 * t.stages + 1);

  std::vector<Shape> shapes = {
      {odd_m, odd_n, odd_k},                                          // one tile, one short k-tile
      {cluster_rows + odd_m, cluster_columns + odd_n, laps + odd_k},  // ragged everywhere, ring wraps twice
      {cluster_rows, 2 * cluster_columns, int64_t{t.tile_k} * t.stages},  // exact tiles, ring filled once
  };
  // Parts along K that differ in length.
  if (t.split_k > 1)
    shapes.push_back({odd_m, cluster_columns + odd_n, int64_t{t.tile_k} * (2 * t.split_k + 1) + odd_k});
  if (sm_count > 0) {
    // A bit over two tiles a CTA: persistent kernels loop, both accumulator slots turn over twice.
    int64_t clusters = 2 * (sm_count / (t.cluster_m * t.cluster_n)) + 3;
    int64_t rows = 1;
    while ((rows + 1) * (rows + 1) <= clusters) ++rows;
    int64_t columns = (clusters + rows - 1) / rows;
    shapes.push_back({rows * cluster_rows - (cls.a_major == Major::k ? 1 : 8), columns * cluster_columns - 8,
                      int64_t{t.tile_k} * 2 + odd_k});
  }
  return shapes;
}

}  // namespace gemmtune
