// Hopper GEMM: TMA -> mbarrier ring -> wgmma -> registers -> global, warp-specialized.
//
// One producer warpgroup (one thread of it issues every copy) and `consumers` warpgroups, each owning
// tile_m / consumers rows of the CTA's tile. Per stage there are two barriers:
//   full[s]   1 arrival (the producer's expect_tx) + the stage's bytes; consumers wait
//   empty[s]  one arrival per consumer warpgroup of every CTA that this CTA's copies reach; the producer waits
// In a cluster the CTAs of one row (same M) share the A tile and those of one column share the B tile: each fetches
// a slice and multicasts it. So a stage may be overwritten only when the consumers of all sharers have released it.
#include "device/mbarrier.cuh"
#include "device/operand_tile.cuh"
#include "device/output.cuh"
#include "device/raster.cuh"
#include "device/wgmma.cuh"

static_assert(problem::in_type != Type::f32, "wgmma_tile_n is rendered for 16-bit operands");

constexpr int kClusterSize = knob::cluster_m * knob::cluster_n;
constexpr int kConsumers = knob::consumers;
constexpr int kThreads = 128 * (kConsumers + 1);
constexpr int kBlocks = knob::tile_m / 64 / kConsumers;  // 64-row MMAs per consumer and step
constexpr int kSteps = knob::tile_k / kMmaDepth;

// Ablations: without copies there is no ring, without MMAs and copies nothing to do along K.
constexpr bool kHasRing = part::copies;
constexpr bool kWalksAlongK = part::copies || part::multiplies;

using TileA = OperandTile<knob::tile_m, knob::tile_k, problem::a_mn_major, knob::swizzle_a>;
using TileB = OperandTile<knob::tile_n, knob::tile_k, problem::b_mn_major, knob::swizzle_b>;
constexpr int kStageBytes = TileA::kStride + TileB::kStride;
constexpr u32 kStageTransaction = TileA::kBytes + TileB::kBytes;

// setmaxnreg moves registers from the producer to the consumers. With two consumers 384 threads start with 168 each:
// 40 + 2 * 232 = 3 * 168. With one consumer the launch already grants what a thread can address.
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

struct Barriers {
  u64 full[knob::stages], empty[knob::stages];
};

struct Ranks {
  u32 m, n;
};

/// What a launch asks of the copies.
struct CopyOptions {
  u32 prefetch;  ///< k-tiles ahead of the copies that are sent to L2; 0: none
  u64 policy_a, policy_b;
};

DEVICE void produce(const TensorMap* map_a, const TensorMap* map_b, u32 ring, u32 full, u32 empty, Ranks rank,
                    u32 tiles_m, u32 tiles_n, int k_tiles, u32 raster_group, u32 raster, const CopyOptions& options) {
  // Bit r of a mask is cluster rank r = m + n * cluster_m.
  u16 mask_a = 0, mask_b = 0;
#pragma unroll
  for (int n = 0; n < knob::cluster_n; ++n) mask_a |= 1 << (rank.m + n * knob::cluster_m);
#pragma unroll
  for (int m = 0; m < knob::cluster_m; ++m) mask_b |= 1 << (m + rank.n * knob::cluster_m);

  RingPosition<knob::stages> at;
  for (u32 index = cluster_id(); index < tiles_m * tiles_n; index += cluster_count()) {
    TileCoordinate tile = raster_tile(index, tiles_m, tiles_n, raster_group, raster);
    int m = static_cast<int>(tile.m * knob::cluster_m + rank.m) * knob::tile_m;
    int n = static_cast<int>(tile.n * knob::cluster_n + rank.n) * knob::tile_n;
#pragma unroll 1
    for (int k = 0; k < k_tiles; ++k) {
      mbarrier_wait(empty + 8 * at.index, at.parity ^ 1);
      u32 barrier = full + 8 * at.index;
      u32 stage = ring + at.index * kStageBytes;
      mbarrier_arrive_expect_tx(barrier, kStageTransaction);
      TileA::load<1, knob::cluster_n>(stage, map_a, m, k * knob::tile_k, rank.n, {barrier, mask_a, options.policy_a});
      TileB::load<1, knob::cluster_m>(stage + TileA::kStride, map_b, n, k * knob::tile_k, rank.m,
                                      {barrier, mask_b, options.policy_b});
      if (options.prefetch > 0 && k + static_cast<int>(options.prefetch) < k_tiles) {
        const int ahead = (k + static_cast<int>(options.prefetch)) * knob::tile_k;
        TileA::prefetch<knob::cluster_n>(map_a, m, ahead, rank.n, options.policy_a);
        TileB::prefetch<knob::cluster_m>(map_b, n, ahead, rank.m, options.policy_b);
      }
      at.advance();
    }
    if constexpr (!knob::persistent) break;
  }
}

/// One arrival of this warpgroup on empty[stage] of every CTA whose copies reach this CTA: its row and its column.
DEVICE void release(u32 empty_barrier, Ranks rank) {
  if constexpr (!kHasRing) return;
  u32 thread = threadIdx.x % 128;
  if constexpr (kClusterSize == 1) {
    if (thread == 0) mbarrier_arrive(empty_barrier);
  } else if (thread < knob::cluster_m + knob::cluster_n - 1) {
    // Threads 0 .. cluster_n-1: the row (same m). The rest: the column without this CTA itself.
    u32 other = thread - knob::cluster_n;
    u32 target = thread < knob::cluster_n
                     ? rank.m + thread * knob::cluster_m
                     : (other < rank.m ? other : other + 1) + rank.n * knob::cluster_m;
    mbarrier_arrive_remote(map_to_rank(empty_barrier, target));
  }
}

DEVICE void consume(u32 ring, u32 full, u32 empty, Ranks rank, u32 consumer, u32 tiles_m, u32 tiles_n, int k_tiles,
                    u32 raster_group, u32 raster, void* d, const void* c, int size_m, int size_n,
                    Scaling scaling) {
  const int first_row = static_cast<int>(consumer) * 64 * kBlocks;
  RingPosition<knob::stages> at;
  for (u32 index = cluster_id(); index < tiles_m * tiles_n; index += cluster_count()) {
    float acc[kBlocks][knob::tile_n / 2];
    [[maybe_unused]] u32 previous = 0;
#pragma unroll 1
    for (int k = 0; k < k_tiles; ++k) {
      if constexpr (kHasRing) mbarrier_wait(full + 8 * at.index, at.parity);
      // What keeps the warps of a group together otherwise are the MMAs.
      if constexpr (!part::multiplies) warpgroup_sync(consumer);
      u32 stage = ring + at.index * kStageBytes;
      u64 a = wgmma_descriptor<TileA, knob::swizzle_a>(stage + TileA::row_offset(first_row));
      u64 b = wgmma_descriptor<TileB, knob::swizzle_b>(stage + TileA::kStride);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < (part::multiplies ? kSteps : 0); ++step)
#pragma unroll
        for (int block = 0; block < kBlocks; ++block)
          wgmma_tile_n(acc[block], a + (TileA::row_offset(64 * block) + TileA::k_offset(step)) / 16,
                       b + TileB::k_offset(step) / 16, k > 0 || step > 0);
      wgmma_commit();
      if constexpr (knob::stages == 1) {
        // The only stage: the next k-step cannot start before this one has let it go.
        wgmma_wait<0>();
        release(empty, rank);
      } else {
        // One stage stays in flight; the one before it has been read.
        if (k > 0) {
          wgmma_wait<1>();
          release(empty + 8 * previous, rank);
        }
        previous = at.index;
      }
      at.advance();
    }
    wgmma_wait<0>();
    if constexpr (!part::multiplies) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block)
#pragma unroll
        for (int i = 0; i < knob::tile_n / 2; ++i) acc[block][i] = 0;
    }
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) wgmma_pin(acc[block]);
    if constexpr (knob::stages > 1 && kWalksAlongK) release(empty + 8 * previous, rank);
    if constexpr (!part::drains) {
      // Never so, which the compiler cannot know: MMAs whose sums nobody reads would be left out.
      if (size_m < 0) {
        float sum = 0;
#pragma unroll
        for (int block = 0; block < kBlocks; ++block)
#pragma unroll
          for (int i = 0; i < knob::tile_n / 2; ++i) sum += acc[block][i];
        static_cast<float*>(d)[threadIdx.x] = sum;
      }
      if constexpr (!knob::persistent) break;
      continue;
    }

    // Fragment of m64nNk16 (ptx-facts 1.7): warp w, lane l hold rows 16w + l/4 (+ 8), columns 2 (l % 4) + 8 i (+ 1).
    TileCoordinate tile = raster_tile(index, tiles_m, tiles_n, raster_group, raster);
    u32 warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    int row0 = static_cast<int>(tile.m * knob::cluster_m + rank.m) * knob::tile_m + first_row +
               static_cast<int>(16 * warp + lane / 4);
    int column0 = static_cast<int>(tile.n * knob::cluster_n + rank.n) * knob::tile_n + static_cast<int>(2 * (lane % 4));
    bool even_n = size_n % 2 == 0;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int row = row0 + 64 * block + 8 * half;
        if (row >= size_m) continue;
        i64 row_start = static_cast<i64>(row) * size_n;
#pragma unroll
        for (int i = 0; i < knob::tile_n / 8; ++i)
          store_pair<problem::out_type, problem::beta>(d, c, row_start, column0 + 8 * i, size_n, even_n,
                                                       acc[block][4 * i + 2 * half], acc[block][4 * i + 2 * half + 1],
                                                       scaling);
      }
    if constexpr (!knob::persistent) break;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    sm90_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, void* d, const void* c,
              int size_m, int size_n, int size_k, float alpha, float beta, u32 raster_group, u32 raster, u32 prefetch, u32 l2_a,
              u32 l2_b) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const u32 ring = shared_address(shared_memory);
  const u32 full = ring + knob::stages * kStageBytes;
  const u32 empty = full + 8 * knob::stages;
  const u32 warpgroup = threadIdx.x / 128;

  if (threadIdx.x == 0) {
    prefetch_tensor_map(&map_a);
    prefetch_tensor_map(&map_b);
    for (int s = 0; s < knob::stages; ++s) {
      mbarrier_init(full + 8 * s, 1);
      mbarrier_init(empty + 8 * s, kConsumers * (knob::cluster_m + knob::cluster_n - 1));
    }
    mbarrier_init_fence();
  }
  sync_all<kClusterSize>();
  // All before this may overlap with the launch ahead of this one in the stream.
  wait_for_previous_grid();

  const u32 rank = kClusterSize > 1 ? cluster_rank() : 0;
  const Ranks ranks{rank % knob::cluster_m, rank / knob::cluster_m};
  const u32 tiles_m = ceil_div(size_m, knob::tile_m * knob::cluster_m);
  const u32 tiles_n = ceil_div(size_n, knob::tile_n * knob::cluster_n);
  const int k_tiles = ceil_div(size_k, knob::tile_k);
  const int k_end = kWalksAlongK ? k_tiles : 0;

  if (warpgroup == 0) {
    if constexpr (kConsumers == 2) registers_decrease<kProducerRegisters>();
    if (threadIdx.x < 32 && elect_one())
      produce(&map_a, &map_b, ring, full, empty, ranks, tiles_m, tiles_n, kHasRing ? k_tiles : 0, raster_group, raster,
              {prefetch, l2_policy(l2_a), l2_policy(l2_b)});
    __syncwarp();
  } else {
    if constexpr (kConsumers == 2) registers_increase<kConsumerRegisters>();
    consume(ring, full, empty, ranks, warpgroup - 1, tiles_m, tiles_n, k_end, raster_group, raster, d, c,
            size_m, size_n, Scaling{alpha, beta});
  }
  // A CTA stays until nobody will signal its barriers or write its stages.
  if constexpr (kClusterSize > 1) cluster_sync();
}
