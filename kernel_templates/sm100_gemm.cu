// Blackwell GEMM: TMA -> mbarrier ring -> tcgen05.mma -> tensor memory -> registers -> global, warp-specialized.
//
// Warps 0-3 epilogue (warp w reads tensor-memory lanes 32w .. 32w+31, which only warps with index % 4 == w may do),
// warp 4 producer (one thread issues every copy), warp 5 MMA (one thread issues every MMA; the warp owns tensor
// memory). With cta_group 2 the even CTA of a pair issues MMAs of 256 rows for both: each CTA holds its own 128 rows
// of A and of D, and half of the columns of B.
//
//   barrier         arrivals                                             waits
//   full[s]         1 + bytes: the producer of the pair's even CTA       MMA thread (of the even CTA)
//   empty[s]        one commit per MMA-issuing CTA of own row or column  producer of each CTA, on its own barrier
//   acc_full[a]     1: the commit behind the last MMA of a tile          epilogue of each CTA, on its own barrier
//   acc_empty[a]    4 warps x cta_group                                  MMA thread (of the even CTA)
//
// A pair's even CTA expects the bytes of both CTAs; the odd CTA's copies signal the even CTA's barrier.
#include "device/mbarrier.cuh"
#include "device/operand_tile.cuh"
#include "device/output.cuh"
#include "device/raster.cuh"
#include "device/tcgen05.cuh"

constexpr int kGroup = knob::cta_group;
constexpr int kClusterSize = knob::cluster_m * knob::cluster_n;
constexpr int kTileM = 128;                   // rows of one CTA
constexpr int kTileBRows = knob::tile_n / kGroup;  // columns of the pair's tile whose B this CTA holds
constexpr int kSteps = knob::tile_k / kMmaDepth;
constexpr int kEpilogueWarps = 4;
constexpr int kProducerWarp = kEpilogueWarps, kMmaWarp = kEpilogueWarps + 1;
constexpr int kThreads = 32 * (kEpilogueWarps + 2);

using TileA = OperandTile<kTileM, knob::tile_k, problem::a_mn_major, knob::swizzle_a>;
using TileB = OperandTile<kTileBRows, knob::tile_k, problem::b_mn_major, knob::swizzle_b>;
constexpr int kStageBytes = TileA::kStride + TileB::kStride;
constexpr u32 kPairTransaction = kGroup * (TileA::kBytes + TileB::kBytes);

// CTAs that fetch slices of the same tile.
constexpr int kSharersA = knob::cluster_n;
constexpr int kSharersB = knob::cluster_m / kGroup;

constexpr int kChunk = knob::tile_n % 32 == 0 ? 32 : 16;  // columns that the epilogue takes at a time
constexpr int kSlotColumns = round_up(knob::tile_n, 32);
constexpr u32 kInstruction = mma_instruction_descriptor<kTileM * kGroup, knob::tile_n, problem::in_type,
                                                        problem::a_mn_major, problem::b_mn_major>();

struct Ring {
  u32 stages, full, empty, acc_full, acc_empty;  // shared addresses
};

struct Work {
  u32 tiles_m, tiles_n;  // in clusters
  int k_tiles;
  u32 raster_group, raster_along_n;
  u32 rank, rank_m, rank_n;

  DEVICE TileCoordinate tile(u32 index) const {
    TileCoordinate at = raster_tile(index, tiles_m, tiles_n, raster_group, raster_along_n);
    return {at.m * knob::cluster_m + rank_m, at.n * (knob::cluster_n) + rank_n};
  }
};

DEVICE void produce(const TensorMap* map_a, const TensorMap* map_b, Ring ring, Work work) {
  // Bit r of a mask is cluster rank r = m + n * cluster_m.
  u16 mask_a = 0, mask_b = 0;
#pragma unroll
  for (int n = 0; n < knob::cluster_n; ++n) mask_a |= 1 << (work.rank_m + n * knob::cluster_m);
#pragma unroll
  for (int m = 0; m < kSharersB; ++m)
    mask_b |= 1 << (m * kGroup + work.rank_m % kGroup + work.rank_n * knob::cluster_m);
  const bool even = work.rank % kGroup == 0;
  // Of a pair only the even CTA's full barriers count.
  const u32 full = kGroup == 2 ? map_to_rank(ring.full, work.rank & ~1u) : ring.full;

  RingPosition<knob::stages> at;
  for (u32 index = cluster_id(); index < work.tiles_m * work.tiles_n; index += cluster_count()) {
    TileCoordinate tile = work.tile(index);
    int m = static_cast<int>(tile.m) * kTileM;
    int n = static_cast<int>(tile.n) * knob::tile_n + static_cast<int>(work.rank_m % kGroup) * kTileBRows;
#pragma unroll 1
    for (int k = 0; k < work.k_tiles; ++k) {
      mbarrier_wait(ring.empty + 8 * at.index, at.parity ^ 1);
      u32 stage = ring.stages + at.index * kStageBytes;
      if (even) mbarrier_arrive_expect_tx(ring.full + 8 * at.index, kPairTransaction);
      u32 barrier = full + 8 * at.index;
      TileA::load<kGroup, kSharersA>(stage, map_a, m, k * knob::tile_k, barrier, work.rank_n, mask_a);
      TileB::load<kGroup, kSharersB>(stage + TileA::kStride, map_b, n, k * knob::tile_k, barrier,
                                     work.rank_m / kGroup, mask_b);
      at.advance();
    }
    if constexpr (!knob::persistent) break;
  }
  // The last commits signal barriers that nothing else waits for: stay until they have arrived.
#pragma unroll 1
  for (int s = 0; s < knob::stages; ++s) {
    mbarrier_wait(ring.empty + 8 * at.index, at.parity ^ 1);
    at.advance();
  }
}

DEVICE void multiply(u32 tmem, Ring ring, Work work) {
  // Who fetched what these MMAs read: both CTAs of the pair, in all columns of the cluster, and the whole row.
  u16 mask_pair = ((1 << kGroup) - 1) << (work.rank & ~(kGroup - 1u));
  u16 mask_stage = 0;
#pragma unroll
  for (int n = 0; n < knob::cluster_n; ++n)
    mask_stage |= ((1 << kGroup) - 1) << ((work.rank_m & ~(kGroup - 1u)) + n * knob::cluster_m);
#pragma unroll
  for (int m = 0; m < knob::cluster_m; ++m) mask_stage |= 1 << (m + work.rank_n * knob::cluster_m);

  RingPosition<knob::stages> at;
  RingPosition<knob::acc_slots> acc;
  for (u32 index = cluster_id(); index < work.tiles_m * work.tiles_n; index += cluster_count()) {
    mbarrier_wait_cluster(ring.acc_empty + 8 * acc.index, acc.parity ^ 1);
    tcgen05_fence_after_sync();
    u32 accumulator = tmem + acc.index * kSlotColumns;
#pragma unroll 1
    for (int k = 0; k < work.k_tiles; ++k) {
      mbarrier_wait(ring.full + 8 * at.index, at.parity);
      tcgen05_fence_after_sync();
      u32 stage = ring.stages + at.index * kStageBytes;
      u64 a = tcgen05_descriptor<TileA, knob::swizzle_a>(stage);
      u64 b = tcgen05_descriptor<TileB, knob::swizzle_b>(stage + TileA::kStride);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        tcgen05_mma<kGroup>(accumulator, a + TileA::k_offset(step) / 16, b + TileB::k_offset(step) / 16, kInstruction,
                            k > 0 || step > 0);
      tcgen05_commit<kGroup, (kClusterSize > 1)>(ring.empty + 8 * at.index, mask_stage);
      at.advance();
    }
    tcgen05_commit<kGroup, (kClusterSize > 1)>(ring.acc_full + 8 * acc.index, mask_pair);
    acc.advance();
    if constexpr (!knob::persistent) break;
  }
}

/// Columns [column, column + kChunk) of one row from registers. `vector`: rows start on 16-byte boundaries, so whole
/// chunks are stored 16 bytes at a time.
DEVICE void store_chunk(const u32 (&acc)[kChunk], void* d, const void* c, i64 row_start, int column, int n, bool vector,
                        Scaling scaling) {
  constexpr Type kOut = problem::out_type;
  i64 index = row_start + column;
  if (vector && column + kChunk <= n) {
    constexpr int kPerVector = 16 / size_bytes(kOut);
#pragma unroll
    for (int i = 0; i < kChunk; i += kPerVector) {
      u32 words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if constexpr (kOut == Type::f32) {
          words[w] = __float_as_uint(
              scale<kOut, problem::beta>(__uint_as_float(acc[i + w]), scaling, c, index + i + w));
        } else {
          int at = i + 2 * w;
          words[w] = pack_pair<kOut>(
              scale<kOut, problem::beta>(__uint_as_float(acc[at]), scaling, c, index + at),
              scale<kOut, problem::beta>(__uint_as_float(acc[at + 1]), scaling, c, index + at + 1));
        }
      }
      *reinterpret_cast<uint4*>(static_cast<unsigned char*>(d) + (index + i) * size_bytes(kOut)) =
          make_uint4(words[0], words[1], words[2], words[3]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kChunk; ++i)
    if (column + i < n)
      store_element<kOut>(d, index + i,
                          scale<kOut, problem::beta>(__uint_as_float(acc[i]), scaling, c, index + i));
}

DEVICE void drain(u32 tmem, Ring ring, Work work, void* d, const void* c, int size_m, int size_n, Scaling scaling) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const u32 leader_acc_empty = kGroup == 2 ? map_to_rank(ring.acc_empty, work.rank & ~1u) : ring.acc_empty;
  const bool vector = size_n % (16 / size_bytes(problem::out_type)) == 0;
  RingPosition<knob::acc_slots> acc;
  for (u32 index = cluster_id(); index < work.tiles_m * work.tiles_n; index += cluster_count()) {
    TileCoordinate tile = work.tile(index);
    int row = static_cast<int>(tile.m) * kTileM + static_cast<int>(32 * warp + lane);
    int column = static_cast<int>(tile.n) * knob::tile_n;
    i64 row_start = static_cast<i64>(row) * size_n;
    mbarrier_wait(ring.acc_full + 8 * acc.index, acc.parity);
    tcgen05_fence_after_sync();
    u32 source = tmem + acc.index * kSlotColumns + (32 * warp << 16);
#pragma unroll 1
    for (int chunk = 0; chunk < knob::tile_n; chunk += kChunk) {
      u32 values[kChunk];
      tmem_load(values, source + chunk);
      tmem_wait_load(values);
      if (chunk + kChunk == knob::tile_n) {
        // Everything is in registers: the MMA thread may have the slot before the last stores.
        tcgen05_fence_before_sync();
        if (elect_one()) {
          if constexpr (kGroup == 2) {
            mbarrier_arrive_cluster(leader_acc_empty + 8 * acc.index);
          } else {
            mbarrier_arrive(leader_acc_empty + 8 * acc.index);
          }
        }
      }
      if (row < size_m) store_chunk(values, d, c, row_start, column + chunk, size_n, vector, scaling);
      __syncwarp();
    }
    acc.advance();
    if constexpr (!knob::persistent) break;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    sm100_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, void* d,
               const void* c, int size_m, int size_n, int size_k, float alpha, float beta, u32 raster_group,
               u32 raster_along_n) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const u32 base = shared_address(shared_memory);
  const u32 barriers = base + knob::stages * kStageBytes;
  const Ring ring{base, barriers, barriers + 8 * knob::stages, barriers + 16 * knob::stages,
                  barriers + 16 * knob::stages + 8 * knob::acc_slots};
  const u32 tmem_address = ring.acc_empty + 8 * knob::acc_slots;
  const u32 warp = threadIdx.x / 32;

  const u32 rank = kClusterSize > 1 ? cluster_rank() : 0;
  const Work work{static_cast<u32>(ceil_div(size_m, kTileM * knob::cluster_m)),
                  static_cast<u32>(ceil_div(size_n, knob::tile_n * knob::cluster_n)),
                  ceil_div(size_k, knob::tile_k),
                  raster_group,
                  raster_along_n,
                  rank,
                  rank % knob::cluster_m,
                  rank / knob::cluster_m};

  if (warp == kProducerWarp && elect_one()) {
    prefetch_tensor_map(&map_a);
    prefetch_tensor_map(&map_b);
    for (int s = 0; s < knob::stages; ++s) {
      mbarrier_init(ring.full + 8 * s, 1);
      mbarrier_init(ring.empty + 8 * s, knob::cluster_m / kGroup + knob::cluster_n - 1);
    }
    for (int a = 0; a < knob::acc_slots; ++a) {
      mbarrier_init(ring.acc_full + 8 * a, 1);
      mbarrier_init(ring.acc_empty + 8 * a, kEpilogueWarps * kGroup);
    }
    mbarrier_init_fence();
  }
  __syncwarp();
  // cta_group 2 allocates in both CTAs together, after both have started.
  sync_all<kClusterSize>();
  if (warp == kMmaWarp) tmem_alloc<kGroup, knob::tmem_columns>(tmem_address);
  tcgen05_fence_before_sync();
  sync_all<kClusterSize>();
  tcgen05_fence_after_sync();
  u32 tmem;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tmem) : "r"(tmem_address) : "memory");

  if (warp == kProducerWarp) {
    if (elect_one()) produce(&map_a, &map_b, ring, work);
  } else if (warp == kMmaWarp) {
    if (rank % kGroup == 0 && elect_one()) multiply(tmem, ring, work);
  } else {
    drain(tmem, ring, work, d, c, size_m, size_n, Scaling{alpha, beta});
  }
  __syncwarp();
  // Nobody may free tensor memory or leave while a peer still reads, signals or computes.
  tcgen05_fence_before_sync();
  sync_all<kClusterSize>();
  tcgen05_fence_after_sync();
  if (warp == kMmaWarp) tmem_free<kGroup, knob::tmem_columns>(tmem);
}
