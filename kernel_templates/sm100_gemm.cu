// Blackwell GEMM: TMA -> mbarrier ring -> tcgen05.mma -> tensor memory -> registers -> global, warp-specialized.
//
// Warps 0 .. E-1 epilogue (E = 4 or 8; warp w reads tensor-memory lanes 32 * (w % 4) .. + 31, no other may), then one
// warp for the copies (one thread issues all), one for the MMAs (one thread issues all; the warp owns tensor memory),
// and with persistent = clc one that asks the hardware for more work. With cta_group 2 the even CTA of a pair issues
// MMAs of twice the rows for both: each CTA holds its own rows of A and of D, and half of the columns of B.
//
//   barrier         arrivals                                             waits
//   full[s]         1 + bytes: the producer of the pair's even CTA       MMA thread (of the even CTA)
//   empty[s]        one commit per MMA-issuing CTA of own row or column  producer of each CTA, on its own barrier
//   acc_full[a]     1: the commit behind the last MMA of a tile          epilogue of each CTA, on its own barrier
//   acc_empty[a]    epilogue warps x cta_group                           MMA thread (of the even CTA)
//   answer full[i]  1 + 16 bytes: the asking warp of rank 0              every role of each CTA, on its own barrier
//   answer empty[i] every role of the cluster                            the asking warp of rank 0
//
// A pair's even CTA expects the bytes of both CTAs; the odd CTA's copies signal the even CTA's barrier.
//
// Without warp specialization (the first steps of the ladders) there are only the epilogue warps: one thread of the first
// issues copies and MMAs in turns, or all threads copy with cp.async and one issues the MMAs.
//
// A and B, rows and columns below are the MMA's. With swap_ab the problem's B is the MMA's A: its N lies along the
// MMA's rows, so that a small M needs only as many MMA columns as it has.
#include "device/bulk_store.cuh"
#include "device/mbarrier.cuh"
#include "device/operand_tile.cuh"
#include "device/output.cuh"
#include "device/raster.cuh"
#include "device/schedule.cuh"
#include "device/tcgen05.cuh"

constexpr int kGroup = knob::cta_group;
// A *team* is what works on one cluster tile: the cluster, or with preferred_m > 1 the preferred cluster of that many
// times the rows. Where the hardware has no room for one it starts several regular clusters in its place, which take its
// rows among themselves. So a kernel knows its cluster's height only at run time; tiles, parts and walks go by teams.
constexpr int kTeamM = knob::cluster_m * knob::preferred_m;
constexpr int kTeamSize = kTeamM * knob::cluster_n;
constexpr int kTileM = knob::tile_m;               // rows of one CTA
constexpr int kTileBRows = knob::tile_n / kGroup;  // columns of the pair's tile whose B this CTA holds
constexpr int kSteps = knob::tile_k / kMmaDepth;
constexpr bool kSwap = knob::swap_ab;
constexpr bool kAMnMajor = kSwap ? problem::b_mn_major : problem::a_mn_major;
constexpr bool kBMnMajor = kSwap ? problem::a_mn_major : problem::b_mn_major;

constexpr Walk kWalk = knob::stream_k          ? Walk::stream_k
                       : knob::persistent == 1 ? Walk::fixed
                       : knob::persistent == 2 ? Walk::dynamic
                                               : Walk::none;
constexpr int kEpilogueWarps = knob::epilogue_warps;
constexpr int kProducerWarp = knob::warp_specialized ? kEpilogueWarps : 0;
constexpr int kMmaWarp = knob::warp_specialized ? kEpilogueWarps + 1 : 0;  // then the one that asks
constexpr bool kSpecialized = knob::warp_specialized;
constexpr bool kCopiesByThreads = knob::loader == 1;
constexpr bool kWaitsForEach = knob::mma_wait == 1;
constexpr int kThreads = 32 * (kEpilogueWarps + (kSpecialized ? 2 + (kWalk == Walk::dynamic) : 0));

using TileA = OperandTile<kTileM, knob::tile_k, kAMnMajor, knob::swizzle_a>;
using TileB = OperandTile<kTileBRows, knob::tile_k, kBMnMajor, knob::swizzle_b>;
constexpr int kStageBytes = TileA::kStride + TileB::kStride;
constexpr u32 kPairTransaction = kGroup * (TileA::kBytes + TileB::kBytes);

// Slices in which tiles are fetched: one for each CTA of the largest cluster that shares the tile.
constexpr int kSlicesA = knob::cluster_n;
constexpr int kSlicesB = kTeamM / kGroup;

// Where an accumulator lies (ptx-facts 4.3). Normally row r is lane r and column n is column n. 64 rows of one CTA take
// 16 lanes of each warp; 2 x 64 rows of a pair take lanes r and r + 64, for the lower and upper half of the columns.
constexpr bool kHalfLanes = kTileM == 64 && kGroup == 1, kFolded = kTileM == 64 && kGroup == 2;
constexpr int kRowsPerWarp = kHalfLanes ? 16 : 32;
constexpr int kLaneColumns = kFolded ? knob::tile_n / 2 : knob::tile_n;     // columns of tensor memory
constexpr int kWarpColumns = kLaneColumns / (kEpilogueWarps / 4);           // of them, one warp's
constexpr int kChunk = kWarpColumns % 32 == 0 ? 32 : 16;                    // that it takes at a time
constexpr int kHeld = kHalfLanes ? kChunk / 2 : kChunk;  // by one thread: with 16 rows, two share each
constexpr int kSlotColumns = round_up(kLaneColumns, 32);
constexpr u32 kInstruction =
    mma_instruction_descriptor<kTileM * kGroup, knob::tile_n, problem::in_type, kAMnMajor, kBMnMajor>();

// A box of results on its way through shared memory: one warp's rows of one chunk. Two a warp.
constexpr bool kStaged = knob::epilogue == 1;
constexpr int kBoxSpan = kChunk * size_bytes(problem::out_type);
constexpr int kBoxBytes = kRowsPerWarp * kBoxSpan;

using Walker = Schedule<kWalk, knob::split_k, kTeamSize>;

// Ablations: without copies there is no ring (its barriers are what ties the CTAs of a cluster together: copies from all
// of them complete a phase), without MMAs and copies nothing to do along K.
constexpr bool kHasRing = part::copies;
constexpr bool kWalksAlongK = part::copies || part::multiplies;

/// Shared addresses. Operand stages and result boxes first: they need the alignment.
struct Layout {
  u32 stages, boxes, full, empty, acc_full, acc_empty;
  AnswerRing answers;
  u32 tmem_address, is_last;

  DEVICE explicit Layout(u32 base)
      : stages(base),
        boxes(base + knob::stages * kStageBytes),
        full(boxes + (kStaged ? 2 * kEpilogueWarps * kBoxBytes : 0)),
        empty(full + 8 * knob::stages),
        acc_full(empty + 8 * knob::stages),
        acc_empty(acc_full + 8 * knob::acc_slots),
        answers{acc_empty + 8 * knob::acc_slots, answers.answers + 16 * kAnswers, answers.full + 8 * kAnswers},
        tmem_address(answers.empty + 8 * kAnswers),
        is_last(tmem_address + 4) {}
};

struct Work {
  u32 tiles_m, tiles_n;  // in teams
  int k_tiles;
  u32 raster_group, raster;
  u32 rank, cluster_m;     // in the cluster, and its height
  u32 rank_m, rank_n;      // in the team
  u32 team, teams;         // of the grid

  DEVICE Work(int rows, int columns, int size_k, u32 raster_group, u32 raster)
      : tiles_m(static_cast<u32>(ceil_div(rows, kTileM * kTeamM))),
        tiles_n(static_cast<u32>(ceil_div(columns, knob::tile_n * knob::cluster_n))),
        k_tiles(ceil_div(size_k, knob::tile_k)),
        raster_group(raster_group),
        raster(raster),
        rank(kTeamSize > 1 ? cluster_rank() : 0) {
    // Rank r is row r % height, column r / height of its cluster.
    cluster_m = knob::preferred_m == 1 ? kTeamM : cluster_size() / knob::cluster_n;
    // Clusters of either kind are runs of CTAs of the one-dimensional grid.
    const u32 cluster_of_team = knob::preferred_m == 1 ? 0 : blockIdx.x % kTeamSize / cluster_size();
    rank_m = rank % cluster_m + cluster_of_team * cluster_m;
    rank_n = rank / cluster_m;
    team = blockIdx.x / kTeamSize;
    teams = gridDim.x / kTeamSize;
  }

  /// Of this CTA, in CTA tiles.
  DEVICE TileCoordinate tile(u32 index) const {
    TileCoordinate at = raster_tile(index, tiles_m, tiles_n, raster_group, raster);
    return {at.m * kTeamM + rank_m, at.n * knob::cluster_n + rank_n};
  }
  DEVICE u32 team_rank() const { return rank_m + rank_n * kTeamM; }
  DEVICE Walker walker(const Layout& at) const {
    AnswerRing ring = at.answers;
    if constexpr (kWalk == Walk::dynamic) ring.empty = map_to_rank(ring.empty, 0);
    return {{tiles_m * tiles_n, k_tiles, team, teams}, ring};
  }

  /// Ranks of the cluster's CTAs that need this CTA's rows of A: its row. Bit r of a mask is rank r.
  DEVICE u16 row_mask() const {
    u32 mask = 0;
#pragma unroll
    for (u32 n = 0; n < knob::cluster_n; ++n) mask |= 1 << (rank % cluster_m + n * cluster_m);
    return static_cast<u16>(mask);
  }
  /// That need this CTA's columns of B: of its column the even CTAs of all pairs, or the odd ones.
  DEVICE u16 column_mask() const {
    u32 mask = 0;
    for (u32 m = rank % kGroup; m < cluster_m; m += kGroup) mask |= 1 << (m + rank_n * cluster_m);
    return static_cast<u16>(mask);
  }
};

/// What a launch asks of the copies.
struct CopyOptions {
  u32 prefetch;  ///< k-tiles ahead of the copies that are sent to L2; 0: none
  u64 policy_a, policy_b;
};

/// This CTA's slices of B's tile: in a cluster lower than the team each CTA stands in for several.
template <class Slice>
DEVICE void for_each_slice_of_b(const Work& work, const Slice& slice) {
  const u32 count = kTeamM / work.cluster_m, first = work.rank % work.cluster_m / kGroup * count;
#pragma unroll 1
  for (u32 i = 0; i < (knob::preferred_m == 1 ? 1 : count); ++i) slice(first + i);
}

DEVICE void produce(const TensorMap* map_a, const TensorMap* map_b, const Layout& shared, const Work& work,
                    const CopyOptions& options) {
  const u16 mask_a = work.row_mask(), mask_b = work.column_mask();
  const bool even = work.rank % kGroup == 0;
  // Of a pair only the even CTA's full barriers count.
  const u32 full = kGroup == 2 ? map_to_rank(shared.full, work.rank & ~1u) : shared.full;

  RingPosition<knob::stages> at;
  Walker walker = work.walker(shared);
  Accumulation todo;
  while (walker.next<false>(todo)) {
    TileCoordinate tile = work.tile(todo.tile);
    int m = static_cast<int>(tile.m) * kTileM;
    int n = static_cast<int>(tile.n) * knob::tile_n + static_cast<int>(work.rank % kGroup) * kTileBRows;
    const int k_end = kHasRing ? todo.k_end : todo.k_begin;
#pragma unroll 1
    for (int k = todo.k_begin; k < k_end; ++k) {
      mbarrier_wait(shared.empty + 8 * at.index, at.parity ^ 1);
      u32 stage = shared.stages + at.index * kStageBytes;
      if (even) mbarrier_arrive_expect_tx(shared.full + 8 * at.index, kPairTransaction);
      u32 barrier = full + 8 * at.index;
      TileA::load<kGroup, kSlicesA>(stage, map_a, m, k * knob::tile_k, work.rank_n,
                                    {barrier, mask_a, options.policy_a});
      for_each_slice_of_b(work, [&](u32 slice) {
        TileB::load<kGroup, kSlicesB>(stage + TileA::kStride, map_b, n, k * knob::tile_k, slice,
                                      {barrier, mask_b, options.policy_b});
      });
      if (options.prefetch > 0 && k + static_cast<int>(options.prefetch) < k_end) {
        const int ahead = (k + static_cast<int>(options.prefetch)) * knob::tile_k;
        TileA::prefetch<kSlicesA>(map_a, m, ahead, work.rank_n, options.policy_a);
        for_each_slice_of_b(
            work, [&](u32 slice) { TileB::prefetch<kSlicesB>(map_b, n, ahead, slice, options.policy_b); });
      }
      at.advance();
    }
  }
  // The last commits signal barriers that nothing else waits for: stay until they have arrived.
#pragma unroll 1
  for (int s = 0; s < knob::stages; ++s) {
    mbarrier_wait(shared.empty + 8 * at.index, at.parity ^ 1);
    at.advance();
  }
}

/// One k-tile: the MMAs of a stage, and the signal that it may be overwritten.
DEVICE void multiply_stage(u32 accumulator, u32 stage, bool accumulate, u32 empty, u16 mask) {
  if constexpr (part::multiplies) {
    u64 a = tcgen05_descriptor<TileA, knob::swizzle_a>(stage);
    u64 b = tcgen05_descriptor<TileB, knob::swizzle_b>(stage + TileA::kStride);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      tcgen05_mma<kGroup>(accumulator, a + TileA::k_offset(step) / 16, b + TileB::k_offset(step) / 16, kInstruction,
                          accumulate || step > 0);
  }
  if constexpr (kHasRing) tcgen05_commit<kGroup, (kTeamSize > 1)>(empty, mask);
}

DEVICE void multiply(u32 tmem, const Layout& shared, const Work& work) {
  // Who fetched what these MMAs read: both CTAs of the pair, in all columns of the cluster, and the whole column.
  u16 mask_pair = ((1 << kGroup) - 1) << (work.rank & ~(kGroup - 1u));
  u16 mask_stage = 0;
#pragma unroll
  for (u32 n = 0; n < knob::cluster_n; ++n)
    mask_stage |= ((1 << kGroup) - 1) << ((work.rank % work.cluster_m & ~(kGroup - 1u)) + n * work.cluster_m);
  mask_stage |= ((1 << work.cluster_m) - 1) << (work.rank_n * work.cluster_m);

  RingPosition<knob::stages> at;
  RingPosition<knob::acc_slots> acc;
  Walker walker = work.walker(shared);
  Accumulation todo;
  while (walker.next<false>(todo)) {
    mbarrier_wait(shared.acc_empty + 8 * acc.index, acc.parity ^ 1);
    tcgen05_fence_after_sync();
    u32 accumulator = tmem + acc.index * kSlotColumns;
    const int k_end = kWalksAlongK ? todo.k_end : todo.k_begin;
#pragma unroll 1
    for (int k = todo.k_begin; k < k_end; ++k) {
      if constexpr (kHasRing) mbarrier_wait(shared.full + 8 * at.index, at.parity);
      tcgen05_fence_after_sync();
      multiply_stage(accumulator, shared.stages + at.index * kStageBytes, k > todo.k_begin, shared.empty + 8 * at.index,
                     mask_stage);
      at.advance();
    }
    tcgen05_commit<kGroup, (kTeamSize > 1)>(shared.acc_full + 8 * acc.index, mask_pair);
    acc.advance();
  }
}

/// Without warp specialization, one accumulation: copies run up to stages - 1 k-tiles ahead. By one thread; with
/// cp.async by all.
DEVICE void produce_and_multiply(const TensorMap* map_a, const TensorMap* map_b, const void* a, const void* b, int rows,
                                 int columns, int size_k, u32 tmem, const Layout& shared, const Work& work,
                                 const CopyOptions& options) {
  Walker walker = work.walker(shared);
  Accumulation todo;
  walker.next<false>(todo);
  TileCoordinate tile = work.tile(todo.tile);
  const int m = static_cast<int>(tile.m) * kTileM, n = static_cast<int>(tile.n) * knob::tile_n;
  const int k_end = kWalksAlongK ? todo.k_end : todo.k_begin;
  RingPosition<knob::stages> filled, at;
#pragma unroll 1
  for (int k = todo.k_begin - (knob::stages - 1); k < k_end; ++k) {
    const int ahead = k + knob::stages - 1;
    if (kHasRing && ahead < k_end) {
      u32 stage = shared.stages + filled.index * kStageBytes, full = shared.full + 8 * filled.index;
      mbarrier_wait(shared.empty + 8 * filled.index, filled.parity ^ 1);
      if constexpr (kCopiesByThreads) {
        TileA::copy<kThreads>(stage, a, m, ahead * knob::tile_k, rows, size_k);
        TileB::copy<kThreads>(stage + TileA::kStride, b, n, ahead * knob::tile_k, columns, size_k);
      } else {
        mbarrier_arrive_expect_tx(full, kPairTransaction);
        TileA::load<kGroup, 1>(stage, map_a, m, ahead * knob::tile_k, 0, {full, 0, options.policy_a});
        TileB::load<kGroup, 1>(stage + TileA::kStride, map_b, n, ahead * knob::tile_k, 0, {full, 0, options.policy_b});
      }
      filled.advance();
    }
    // One group a turn, empty ones too, so that "all but the last stages - 1" is always the right number.
    if constexpr (kCopiesByThreads) cp_async_commit();
    if (k < todo.k_begin) continue;
    bool issues = true;
    if constexpr (kCopiesByThreads) {
      cp_async_wait<knob::stages - 1>();
      fence_async_shared();
      __syncthreads();
      issues = threadIdx.x == 0;
    } else if constexpr (kHasRing) {
      mbarrier_wait(shared.full + 8 * at.index, at.parity);
    }
    if (issues) {
      tcgen05_fence_after_sync();
      multiply_stage(tmem, shared.stages + at.index * kStageBytes, k > todo.k_begin, shared.empty + 8 * at.index, 0);
    }
    if constexpr (kWaitsForEach && kHasRing) mbarrier_wait(shared.empty + 8 * at.index, at.parity);
    at.advance();
  }
  if (!kCopiesByThreads || threadIdx.x == 0)
    tcgen05_commit<kGroup, (kTeamSize > 1)>(shared.acc_full, 0);
  if constexpr (!kWaitsForEach) {
#pragma unroll 1
    for (int s = 0; s < knob::stages; ++s) {
      mbarrier_wait(shared.empty + 8 * filled.index, filled.parity ^ 1);
      filled.advance();
    }
  }
}

/// What becomes of accumulated values.
struct Output {
  const TensorMap* map_d;
  void* d;
  const void* c;
  int rows, columns;  // of the MMA's D: M x N of the problem, or N x M with swap_ab
  Scaling scaling;
  unsigned char* workspace;

  /// Columns [column, column + kHeld) of one row, in registers, to global memory.
  DEVICE void store(const u32 (&acc)[kHeld], int row, int column) const {
    if (row >= rows) return;
    if constexpr (kSwap) {
      // D's rows run along the MMA's columns: the lanes of a warp hold neighbours.
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        if (column + i < columns) put(acc[i], static_cast<i64>(column + i) * rows + row);
      return;
    }
    i64 index = static_cast<i64>(row) * columns + column;
    constexpr int kPerVector = 16 / size_bytes(problem::out_type);
    // Rows start on 16-byte boundaries: whole chunks are stored 16 bytes at a time.
    if (columns % kPerVector == 0 && column + kHeld <= columns) {
#pragma unroll
      for (int i = 0; i < kHeld; i += kPerVector) {
        u32 words[4];
        pack(acc, i, index + i, words);
        *reinterpret_cast<uint4*>(static_cast<unsigned char*>(d) + (index + i) * size_bytes(problem::out_type)) =
            make_uint4(words[0], words[1], words[2], words[3]);
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (column + i < columns) put(acc[i], index + i);
  }

  /// The same into a row of a box in shared memory, from its 16-byte unit `first_unit` on.
  DEVICE void stage(const u32 (&acc)[kHeld], int row, int column, u32 box, u32 box_row, u32 first_unit) const {
    i64 index = static_cast<i64>(row) * columns + column;
    constexpr int kPerUnit = 16 / size_bytes(problem::out_type);
#pragma unroll
    for (int unit = 0; unit < kHeld / kPerUnit; ++unit) {
      u32 words[4];
      pack(acc, unit * kPerUnit, index + unit * kPerUnit, words, row < rows, columns - column);
      store_shared_16(box + swizzled_offset<kBoxSpan>(box_row, first_unit + unit), words);
    }
  }

 private:
  DEVICE void put(u32 acc, i64 index) const {
    store_element<problem::out_type>(
        d, index, scale<problem::out_type, problem::beta>(__uint_as_float(acc), scaling, c, index));
  }
  /// 16 bytes of results from acc[first] on, whose first element is D's element `index`. C is not read outside: where
  /// `inside` is false or beyond `left` columns of the chunk's start.
  DEVICE void pack(const u32 (&acc)[kHeld], int first, i64 index, u32 (&words)[4], bool inside = true,
                   int left = kHeld) const {
    constexpr Type kOut = problem::out_type;
    auto value = [&](int i, int offset) {
      float x = __uint_as_float(acc[i]);
      if (problem::beta && !(inside && i < left)) return x;
      return scale<kOut, problem::beta>(x, scaling, c, index + offset);
    };
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if constexpr (kOut == Type::f32) {
        words[w] = __float_as_uint(value(first + w, w));
      } else {
        words[w] = pack_pair<kOut>(value(first + 2 * w, 2 * w), value(first + 2 * w + 1, 2 * w + 1));
      }
    }
  }
};

/// Partial sums of a tile that several clusters work on. They are added up in the order of K by whoever comes last, so
/// the result does not depend on who that is. Nobody waits for anybody: any number of clusters may be resident.
///
/// Workspace: one counter a CTA tile, zero before the launch and again after it; then per slot and CTA of the team
/// kTileM x tile_n values, neighbouring rows next to each other.
struct Partials {
  u32* counters;
  float* values;
  u32 rank, is_last;

  DEVICE Partials(const Output& out, const Work& work, u32 shared_is_last)
      : counters(reinterpret_cast<u32*>(out.workspace)), rank(work.team_rank()), is_last(shared_is_last) {
    i64 counter_bytes = 4ll * work.tiles_m * work.tiles_n * kTeamSize;
    values = reinterpret_cast<float*>(out.workspace + (counter_bytes + 1023) / 1024 * 1024);
  }
  DEVICE float* column(u32 slot, int row, int column) const {
    return values + (static_cast<i64>(slot) * kTeamSize + rank) * (kTileM * knob::tile_n) +
           static_cast<i64>(column) * kTileM + row;
  }

  /// Every epilogue thread, after its stores. True for all of them if the other parts are all there.
  DEVICE bool arrive(const Accumulation& done) const {
    __threadfence();
    named_barrier<1, 32 * kEpilogueWarps>();
    if (threadIdx.x == 0) {
      u32* counter = counters + static_cast<i64>(done.tile) * kTeamSize + rank;
      u32 before = atomicAdd(counter, 1u);
      if (before == done.parts - 1) *counter = 0;
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(is_last), "r"(u32{before == done.parts - 1}) : "memory");
      __threadfence();
    }
    named_barrier<1, 32 * kEpilogueWarps>();
    u32 last;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(last) : "r"(is_last) : "memory");
    if (last) __threadfence();
    return last != 0;
  }
};

DEVICE void load_chunk(u32 (&values)[kHeld], u32 source) {
  if constexpr (kHalfLanes) {
    tmem_load_halves(values, source);
  } else {
    tmem_load(values, source);
  }
}

DEVICE void drain(u32 tmem, const Layout& shared, const Work& work, const Output& out) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, quarter = warp % 4;
  const u32 leader_acc_empty = kGroup == 2 ? map_to_rank(shared.acc_empty, work.rank & ~1u) : shared.acc_empty;
  // This thread's place in the CTA's tile. Where a warp has 16 rows, its upper half takes the chunk's upper columns.
  const u32 lane_row = lane % kRowsPerWarp, upper = lane / kRowsPerWarp * kHeld;
  const int first_row = kFolded ? 32 * (quarter % 2) : kRowsPerWarp * quarter, local_row = first_row + lane_row;
  const int first_column = (kFolded ? quarter / 2 * kLaneColumns : 0) + warp / 4 * kWarpColumns;
  const u32 lane_columns = (32 * quarter << 16) + warp / 4 * kWarpColumns;
  const u32 boxes = shared.boxes + warp * 2 * kBoxBytes;
  u32 box = 0;

  // One chunk of results, `row` and `column` in D.
  auto emit = [&](const u32 (&values)[kHeld], int row0, int column) {
    if constexpr (kStaged) {
      u32 place = boxes + box * kBoxBytes;
      box ^= 1;
      // The box before the last one: its store has read it.
      if (lane == 0) bulk_wait_read<1>();
      __syncwarp();
      out.stage(values, row0 + local_row, column + upper, place, lane_row,
                upper * size_bytes(problem::out_type) / 16);
      fence_async_shared();
      __syncwarp();
      if (lane == 0) {
        tma_store_2d(out.map_d, column, row0 + first_row, place);
        bulk_commit();
      }
    } else {
      out.store(values, row0 + local_row, column + upper);
      __syncwarp();
    }
  };

  RingPosition<knob::acc_slots> acc;
  Walker walker = work.walker(shared);
  Accumulation todo;
  while (walker.next<true>(todo)) {
    TileCoordinate tile = work.tile(todo.tile);
    const int row0 = static_cast<int>(tile.m) * kTileM;
    const int column0 = static_cast<int>(tile.n) * knob::tile_n + first_column;
    mbarrier_wait(shared.acc_full + 8 * acc.index, acc.parity);
    tcgen05_fence_after_sync();
    const u32 source = tmem + acc.index * kSlotColumns + lane_columns;
    // Everything is in registers: the MMA thread may have the slot before the last stores.
    auto release = [&] {
      tcgen05_fence_before_sync();
      if (elect_one()) mbarrier_arrive_remote(leader_acc_empty + 8 * acc.index);
    };
    if constexpr (!part::drains) {
      release();
      acc.advance();
      continue;
    }
    bool whole = true;
    if constexpr (Walker::kReduces) {
      if (todo.parts > 1) {
        whole = false;
        const Partials partials(out, work, shared.is_last);
        const u32 own = walker.slot_of(todo, todo.part);
#pragma unroll 1
        for (int chunk = 0; chunk < kWarpColumns; chunk += kChunk) {
          u32 values[kHeld];
          load_chunk(values, source + chunk);
          tmem_wait_load(values);
          if (chunk + kChunk == kWarpColumns) release();
          float* to = partials.column(own, local_row, first_column + chunk + upper);
#pragma unroll
          for (int i = 0; i < kHeld; ++i)
            to[i * kTileM] = __uint_as_float(values[i]);
          __syncwarp();
        }
        if (partials.arrive(todo)) {
#pragma unroll 1
          for (int chunk = 0; chunk < kWarpColumns; chunk += kChunk) {
            float sum[kHeld] = {};
            for (u32 part = 0; part < todo.parts; ++part) {
              const float* from = partials.column(walker.slot_of(todo, part), local_row, first_column + chunk + upper);
#pragma unroll
              for (int i = 0; i < kHeld; ++i)
                sum[i] += __ldcg(from + i * kTileM);
            }
            u32 values[kHeld];
#pragma unroll
            for (int i = 0; i < kHeld; ++i) values[i] = __float_as_uint(sum[i]);
            emit(values, row0, column0 + chunk);
          }
        }
      }
    }
    if (whole) {
#pragma unroll 1
      for (int chunk = 0; chunk < kWarpColumns; chunk += kChunk) {
        u32 values[kHeld];
        load_chunk(values, source + chunk);
        tmem_wait_load(values);
        if (chunk + kChunk == kWarpColumns) release();
        emit(values, row0, column0 + chunk);
      }
    }
    acc.advance();
  }
  // Shared memory must stay until the stores have read it; the kernel's end waits for the writes.
  if (kStaged && lane == 0) bulk_wait_all();
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    sm100_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
               const __grid_constant__ TensorMap map_d, const void* a, const void* b, void* d, const void* c,
               void* workspace, int rows, int columns, int size_k, float alpha, float beta, u32 raster_group, u32 raster,
               u32 prefetch, u32 l2_a, u32 l2_b) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const Layout shared(shared_address(shared_memory));
  const u32 warp = threadIdx.x / 32;
  const Work work(rows, columns, size_k, raster_group, raster);
  const u32 rank = work.rank;

  if (warp == kProducerWarp && elect_one()) {
    prefetch_tensor_map(&map_a);
    prefetch_tensor_map(&map_b);
    if (kStaged) prefetch_tensor_map(&map_d);
    for (int s = 0; s < knob::stages; ++s) {
      mbarrier_init(shared.full + 8 * s, 1);
      mbarrier_init(shared.empty + 8 * s, work.cluster_m / kGroup + knob::cluster_n - 1);
    }
    for (int a = 0; a < knob::acc_slots; ++a) {
      mbarrier_init(shared.acc_full + 8 * a, 1);
      mbarrier_init(shared.acc_empty + 8 * a, kEpilogueWarps * kGroup);
    }
    if (kWalk == Walk::dynamic) {
      for (int i = 0; i < kAnswers; ++i) {
        mbarrier_init(shared.answers.full + 8 * i, 1);
        // Producers, epilogue warps and MMA threads of the cluster, and who asks.
        mbarrier_init(shared.answers.empty + 8 * i, kTeamSize * (1 + kEpilogueWarps) + kTeamSize / kGroup + 1);
      }
    }
    mbarrier_init_fence();
  }
  __syncwarp();
  // cta_group 2 allocates in both CTAs together, after both have started.
  sync_all<kTeamSize>();
  if (warp == kMmaWarp) tmem_alloc<kGroup, knob::tmem_columns>(shared.tmem_address);
  tcgen05_fence_before_sync();
  sync_all<kTeamSize>();
  tcgen05_fence_after_sync();
  u32 tmem;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tmem) : "r"(shared.tmem_address) : "memory");

  // All before this may overlap with the launch ahead of this one in the stream.
  wait_for_previous_grid();

  const CopyOptions options{prefetch, l2_policy(l2_a), l2_policy(l2_b)};
  const Output out{&map_d, d, c, rows, columns, Scaling{alpha, beta}, static_cast<unsigned char*>(workspace)};
  if constexpr (!kSpecialized) {
    if (kCopiesByThreads || (warp == kMmaWarp && elect_one()))
      produce_and_multiply(&map_a, &map_b, a, b, rows, columns, size_k, tmem, shared, work, options);
    __syncwarp();
    drain(tmem, shared, work, out);
  } else if (warp == kProducerWarp) {
    if (elect_one()) produce(&map_a, &map_b, shared, work, options);
  } else if (warp == kMmaWarp) {
    if (rank % kGroup == 0 && elect_one()) multiply(tmem, shared, work);
  } else if (warp < kEpilogueWarps) {
    drain(tmem, shared, work, out);
  } else if (rank == 0) {
    if constexpr (kWalk == Walk::dynamic) work.walker(shared).ask(shared.answers.empty);
  }
  __syncwarp();
  // Nobody may free tensor memory or leave while a peer still reads, signals or computes.
  tcgen05_fence_before_sync();
  sync_all<kTeamSize>();
  tcgen05_fence_after_sync();
  if (warp == kMmaWarp) tmem_free<kGroup, knob::tmem_columns>(tmem);
}
