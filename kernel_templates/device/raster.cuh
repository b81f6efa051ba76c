// The order in which output tiles are visited. Neighbours in time share operand tiles in L2.
#pragma once
#include "device/types.cuh"

struct TileCoordinate {
  u32 m, n;
};

/// `index` in [0, tiles_m * tiles_n). The walk goes in bands of `group` tiles: across the band first, then one step
/// along. along_n = 0: bands are `group` columns wide and run down M; along_n = 1: `group` rows, running along N.
/// The last band is as narrow as what is left, so that no walk leaves the matrix (a swizzle that walked off M gave
/// the fake 1.13x of seed 000_b7f4eb2624be9cfc.txt, section 10).
DEVICE TileCoordinate raster_tile(u32 index, u32 tiles_m, u32 tiles_n, u32 group, u32 along_n) {
  u32 across = along_n ? tiles_m : tiles_n;
  u32 along = along_n ? tiles_n : tiles_m;
  u32 band = index / (group * along);
  u32 first = band * group;
  u32 width = across - first < group ? across - first : group;
  u32 within = index - first * along;
  u32 a = first + within % width;
  u32 b = within / width;
  return along_n ? TileCoordinate{a, b} : TileCoordinate{b, a};
}
