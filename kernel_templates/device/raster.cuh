// The order in which output tiles are visited. Neighbours in time share operand tiles in L2.
#pragma once
#include "device/types.cuh"

struct TileCoordinate {
  u32 m, n;
};

/// The `index`-th tile of a Hilbert-like curve through a rectangle of any size: any run of neighbours is about as high as
/// it is wide, whatever its length, so no band width has to suit the L2.
///
/// A region of a x b tiles is entered at one corner and left at the other end of `a`. It is cut until one row or column
/// is left: a long one into two in line; else into a quarter at the entry, walked with its axes exchanged, the half
/// beyond it, and the quarter at the exit, walked back. No padding to a power of two, so nothing to skip.
DEVICE TileCoordinate hilbert_tile(u32 index, u32 tiles_m, u32 tiles_n) {
  bool a_is_m = tiles_m >= tiles_n;
  int a = static_cast<int>(a_is_m ? tiles_m : tiles_n), b = static_cast<int>(a_is_m ? tiles_n : tiles_m);
  int at_a = 0, at_b = 0, step_a = 1, step_b = 1;  // the entry, and which way a and b lead from it
  int left = static_cast<int>(index);
  while (a > 1 && b > 1) {
    // Even parts keep the curve connected (but for a few diagonal steps where no even cut exists).
    int half_a = a / 2, half_b = b / 2;
    if (2 * a > 3 * b) {
      half_a += half_a % 2 != 0 && a > 2;
      if (left < half_a * b) {
        a = half_a;
      } else {
        left -= half_a * b;
        at_a += step_a * half_a;
        a -= half_a;
      }
      continue;
    }
    half_b += half_b % 2 != 0 && b > 2;
    const int first = half_b * half_a, second = a * (b - half_b);
    if (left >= first && left < first + second) {
      left -= first;
      at_b += step_b * half_b;
      b -= half_b;
      continue;
    }
    // A quarter: the axes change places.
    if (left < first) {
      b = half_a;
      a = half_b;
    } else {
      left -= first + second;
      at_a += step_a * (a - 1);
      at_b += step_b * (half_b - 1);
      b = a - half_a;
      a = half_b;
      step_a = -step_a, step_b = -step_b;
    }
    int swap = at_a;
    at_a = at_b, at_b = swap;
    swap = step_a;
    step_a = step_b, step_b = swap;
    a_is_m = !a_is_m;
  }
  (a > 1 ? at_a : at_b) += left * (a > 1 ? step_a : step_b);
  u32 m = static_cast<u32>(a_is_m ? at_a : at_b), n = static_cast<u32>(a_is_m ? at_b : at_a);
  return {m, n};
}

constexpr u32 kRasterAlongN = 1, kRasterHilbert = 2;

/// `index` in [0, tiles_m * tiles_n). The walk goes in bands of `group` tiles: across the band first, then one step
/// along. Along M: bands are `group` columns wide and run down; along N: `group` rows, running to the right.
/// The last band is as narrow as what is left, so that no walk leaves the matrix (a swizzle that walked off M gave
/// the fake 1.13x of seed 000_b7f4eb2624be9cfc.txt, section 10). Hilbert needs no group.
DEVICE TileCoordinate raster_tile(u32 index, u32 tiles_m, u32 tiles_n, u32 group, u32 raster) {
  if (raster == kRasterHilbert) return hilbert_tile(index, tiles_m, tiles_n);
  const bool along_n = raster == kRasterAlongN;
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
