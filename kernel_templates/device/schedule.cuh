// Who works on what: a team's sequence of accumulations (a team is a cluster, or several in place of a larger one). Every role of a kernel (copies, MMAs, epilogue) walks the
// same sequence, each with a Schedule of its own.
//
//   none      one accumulation a team: its index
//   fixed     team t takes t, t + teams, t + 2 * teams ...
//   dynamic   its own id, then what the hardware hands over (launch_control.cuh)
//   stream_k  like fixed while whole rounds are left; the last one or two rounds are cut along K into equal shares, so
//             that all teams end together
#pragma once
#include "device/launch_control.cuh"

enum class Walk { none, fixed, dynamic, stream_k };

/// k-tiles [k_begin, k_end) of one output tile. parts > 1: others do the rest, and the results must be added up.
struct Accumulation {
  u32 tile;
  int k_begin, k_end;
  u32 part, parts;
  u32 workspace_slot;  // Schedule::slot_of() counts from here
};

/// The same for every CTA of a team.
struct Problem {
  u32 tiles;
  int k_tiles;
  u32 team, teams;  ///< of the grid
};

/// Answers of the dynamic scheduler in shared memory: a ring of kAnswers.
constexpr int kAnswers = 2;
struct AnswerRing {
  u32 answers, full, empty;  // shared addresses; `empty` is rank 0's
};

/// kSplit: parts along K of every tile (fewer where K has fewer k-tiles).
template <Walk kWalk, int kSplit, int kTeamSize>
struct Schedule {
  static constexpr bool kReduces = kSplit > 1 || kWalk == Walk::stream_k;
  Problem problem;
  AnswerRing ring;
  u32 next_index = 0;  // accumulation (stream_k: whole tile)
  bool started = false;
  u64 share = 0, share_end = 0;  // stream_k: k-tiles of the cut rounds, counted through
  RingPosition<kAnswers> at;

  DEVICE u32 parts() const {
    return kSplit == 1 ? 1 : (problem.k_tiles < kSplit ? static_cast<u32>(problem.k_tiles) : kSplit);
  }

  // --- stream_k: the cut rounds ---
  DEVICE u32 whole_tiles() const {
    u32 rest = problem.tiles % problem.teams;
    if (rest == 0) return problem.tiles;
    u32 rounds = problem.tiles / problem.teams;
    return rounds > 0 ? (rounds - 1) * problem.teams : 0;
  }
  DEVICE u64 cut_work() const { return static_cast<u64>(problem.tiles - whole_tiles()) * problem.k_tiles; }
  /// Teams that take part: each has at least one k-tile.
  DEVICE u64 sharers() const { return cut_work() < problem.teams ? cut_work() : problem.teams; }
  DEVICE u64 share_begin(u64 team) const { return team * cut_work() / sharers(); }
  DEVICE u32 sharer_of(u64 k_tile) const { return static_cast<u32>(((k_tile + 1) * sharers() - 1) / cut_work()); }

  /// The workspace slot of part p of the tile that `a` belongs to. stream_k: each team has two, for the tile that it
  /// begins in the middle of and for the one that it leaves unfinished.
  DEVICE u32 slot_of(const Accumulation& a, u32 p) const {
    if constexpr (kWalk == Walk::stream_k) return a.workspace_slot + 2 * p + (p == 0 ? 1 : 0);
    return a.workspace_slot + p;
  }

  DEVICE void accumulation(u32 index, Accumulation& a) const {
    a.parts = parts();
    a.tile = kSplit == 1 ? index : index / a.parts;
    a.part = kSplit == 1 ? 0 : index % a.parts;
    a.workspace_slot = a.tile * a.parts;
    // 64 bits: K may have 2^27 k-tiles.
    a.k_begin = kSplit == 1 ? 0 : static_cast<int>(static_cast<i64>(a.part) * problem.k_tiles / a.parts);
    a.k_end = kSplit == 1 ? problem.k_tiles : static_cast<int>(static_cast<i64>(a.part + 1) * problem.k_tiles / a.parts);
  }

  DEVICE bool next_share(Accumulation& a) {
    if (share >= share_end) return false;
    u64 in_tile = share % problem.k_tiles, tile_begin = share - in_tile;
    u64 left = share_end - share, length = problem.k_tiles - in_tile < left ? problem.k_tiles - in_tile : left;
    a.tile = whole_tiles() + static_cast<u32>(share / problem.k_tiles);
    a.k_begin = static_cast<int>(in_tile);
    a.k_end = static_cast<int>(in_tile + length);
    u32 first = sharer_of(tile_begin);
    a.part = problem.team - first;
    a.parts = sharer_of(tile_begin + problem.k_tiles - 1) - first + 1;
    a.workspace_slot = 2 * first;
    share += length;
    return true;
  }

  /// The next accumulation of this team, or false at the end. kWarp: called by a whole converged warp, else by one
  /// thread.
  template <bool kWarp>
  DEVICE bool next(Accumulation& a) {
    if constexpr (kWalk == Walk::none) {
      if (started) return false;
      started = true;
      accumulation(problem.team, a);
      return true;
    } else if constexpr (kWalk == Walk::fixed) {
      if (!started) next_index = problem.team;
      started = true;
      if (next_index >= problem.tiles * parts()) return false;
      accumulation(next_index, a);
      next_index += problem.teams;
      return true;
    } else if constexpr (kWalk == Walk::stream_k) {
      if (!started) {
        next_index = problem.team;
        if (cut_work() > 0 && problem.team < sharers()) {
          share = share_begin(problem.team);
          share_end = share_begin(problem.team + 1);
        }
      }
      started = true;
      if (next_index < whole_tiles()) {
        accumulation(next_index, a);
        next_index += problem.teams;
        return true;
      }
      return next_share(a);
    } else {
      if (!started) {
        started = true;
        accumulation(problem.team, a);
        return true;
      }
      mbarrier_wait_cluster(ring.full + 8 * at.index, at.parity);
      u32 first_cta;
      bool taken = cancelled_cluster(ring.answers + 16 * at.index, first_cta);
      // The place may be written again once every reader has said so.
      fence_async_shared();
      if constexpr (kWarp) __syncwarp();
      if (!kWarp || elect_one()) mbarrier_arrive_cluster(ring.empty + 8 * at.index);
      at.advance();
      if (taken) accumulation(first_cta / kTeamSize, a);
      return taken;
    }
  }

  /// Dynamic only: the asking, by one converged warp of the cluster's CTA of rank 0. `empty`: this CTA's own address of
  /// ring.empty.
  DEVICE void ask(u32 empty) {
    const u32 lane = threadIdx.x % 32;
    RingPosition<kAnswers> asked;
    started = true;  // what this cluster was launched for needs no answer
    Accumulation ignored;
    do {
      mbarrier_wait_cluster(empty + 8 * asked.index, asked.parity ^ 1);
      // Each CTA expects its own copy of the answer.
      u32 full = ring.full + 8 * asked.index;
      if (lane < kTeamSize) mbarrier_arrive_expect_tx_remote(map_to_rank(full, lane), 16);
      __syncwarp();
      if (elect_one()) cancel_next_cluster<kTeamSize>(ring.answers + 16 * asked.index, full);
      asked.advance();
    } while (next<true>(ignored));
  }
};
