// The walks over output tiles, as the kernels compute them: device/raster.cuh compiled for the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#define __device__
#define __host__
#define __forceinline__ inline
#include "kernel_templates/device/raster.cuh"

namespace {

constexpr u32 kRasters[] = {0, kRasterAlongN, kRasterHilbert};

using Walk = std::vector<std::pair<int, int>>;

Walk walk(u32 tiles_m, u32 tiles_n, u32 group, u32 raster) {
  Walk tiles;
  for (u32 i = 0; i < tiles_m * tiles_n; ++i) {
    TileCoordinate at = raster_tile(i, tiles_m, tiles_n, group, raster);
    tiles.emplace_back(static_cast<int>(at.m), static_cast<int>(at.n));
  }
  return tiles;
}

TEST(Raster, EveryTileOnceAndNoneOutside) {
  for (u32 raster : kRasters)
    for (u32 group : {1u, 3u, 8u})
      for (u32 tiles_m = 1; tiles_m <= 21; ++tiles_m)
        for (u32 tiles_n = 1; tiles_n <= 21; ++tiles_n) {
          Walk tiles = walk(tiles_m, tiles_n, group, raster);
          std::set<std::pair<int, int>> seen(tiles.begin(), tiles.end());
          ASSERT_EQ(seen.size(), tiles.size()) << tiles_m << " x " << tiles_n << " raster " << raster;
          for (const auto& [m, n] : tiles)
            ASSERT_TRUE(m >= 0 && n >= 0 && m < static_cast<int>(tiles_m) && n < static_cast<int>(tiles_n))
                << m << ", " << n << " of " << tiles_m << " x " << tiles_n << " raster " << raster;
        }
}

// Each step leads to a neighbour; diagonally at most once a walk, where no even cut exists.
TEST(Raster, HilbertStepsToNeighbours) {
  for (u32 tiles_m = 1; tiles_m <= 40; ++tiles_m)
    for (u32 tiles_n = 1; tiles_n <= 40; ++tiles_n) {
      Walk tiles = walk(tiles_m, tiles_n, 8, kRasterHilbert);
      int diagonal = 0;
      for (size_t i = 1; i < tiles.size(); ++i) {
        int dm = std::abs(tiles[i].first - tiles[i - 1].first),
            dn = std::abs(tiles[i].second - tiles[i - 1].second);
        ASSERT_LE(std::max(dm, dn), 1) << tiles_m << " x " << tiles_n << " step " << i;
        diagonal += dm + dn == 2;
      }
      ASSERT_LE(diagonal, 1) << tiles_m << " x " << tiles_n;
    }
}

/// Distinct rows and columns of operand tiles that `length` consecutive tiles need, in the worst place.
int worst_footprint(const Walk& tiles, size_t length) {
  int worst = 0;
  for (size_t first = 0; first + length <= tiles.size(); first += length) {
    std::set<int> rows, columns;
    for (size_t i = first; i < first + length; ++i) {
      rows.insert(tiles[i].first);
      columns.insert(tiles[i].second);
    }
    worst = std::max(worst, static_cast<int>(rows.size() + columns.size()));
  }
  return worst;
}

// What the curve is for: any run of tiles needs few operand tiles, without a band width chosen for its
// length.
TEST(Raster, HilbertIsCompactAtEveryLength) {
  for (size_t length : {16u, 64u, 148u, 256u}) {
    int hilbert = worst_footprint(walk(32, 64, 8, kRasterHilbert), length);
    // A run of a space-filling curve fits few squares of its own size.
    EXPECT_LE(hilbert, 4 * std::sqrt(static_cast<double>(length))) << length;
    EXPECT_LT(hilbert, worst_footprint(walk(32, 64, 1, 0), length)) << length;
  }
}

}  // namespace
