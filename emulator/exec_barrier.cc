// bar, barrier (named barriers of a CTA), bar.warp.sync and barrier.cluster (PTX ISA 9.7.13).
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

void complete(Cta& cta, NamedBarrier& b) {
  std::swap(b.completed, b.arriving);
  b.arriving.at.clear();
  ++b.generation;
  b.result_count = b.reduce_count;
  b.result_and = b.reduce_and;
  b.result_or = b.reduce_or;
  b.arrived = b.expected = 0;
  b.reduce_count = b.reduce_or = 0;
  b.reduce_and = 1;
  ++cta.cluster->events;
}

/// mod: [0] sync, arrive, red; [1] aligned; [2] has a thread count; [3] popc, and, or; operands: dst, id,
/// count, predicate.
Action barrier(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  Cta& cta = *w.cta;
  if (f.step == 0) {
    if (in.mod[1] && !aligned(w, f, mask)) return Action::wait;
    int lane = first_lane(mask);
    uint32_t id = static_cast<uint32_t>(lane_value(w, in.ops[1], lane));
    if (id >= cta.barriers.size())
      throw Fault(Check::illegal_instruction, fmt::format("barrier {} is not 0 to 15", id));
    NamedBarrier& b = cta.barriers[id];
    uint32_t count = in.mod[2] ? static_cast<uint32_t>(lane_value(w, in.ops[2], lane)) : 0;
    if (in.mod[2] && (count == 0 || count % 32))
      throw Fault(Check::illegal_instruction,
                  fmt::format("barrier {}: thread count {} is not a multiple of 32", id, count));
    // Without a count it is every thread that has not exited; 0 stands for that until the barrier completes.
    if (b.arrived > 0 && b.expected != count)
      throw Fault(Check::illegal_instruction,
                  fmt::format("barrier {}: thread count {} differs from the {} that others gave", id, count,
                              b.expected));
    b.expected = count;
    // A warp counts whole when .aligned, even where lanes have exited (the hardware counts warps).
    b.arrived += in.mod[1] && count ? 32 : static_cast<uint32_t>(std::popcount(mask));
    if (in.mod[0] == 2) {
      Mask p = w.predicate(in.ops[3]);
      b.reduce_count += static_cast<uint32_t>(std::popcount(p & mask));
      if ((p & mask) != mask) b.reduce_and = 0;
      if (p & mask) b.reduce_or = 1;
    }
    uint32_t needed = count ? count : cta.live_threads;
    if (b.arrived > needed)
      throw Fault(Check::illegal_instruction,
                  fmt::format("barrier {}: {} threads arrived, {} were expected", id, b.arrived, needed));
    f.token = b.generation;
    ++cta.cluster->events;
    b.arriving.join(w.release());
    if (b.arrived == needed) complete(cta, b);
    if (in.mod[0] == 1) return Action::next;
    f.step = 1;
  }
  uint32_t id = static_cast<uint32_t>(lane_value(w, in.ops[1], first_lane(mask)));
  NamedBarrier& b = cta.barriers[id];
  if (b.generation == f.token) {
    f.wait_on(&b.generation);
    f.describe_wait = [&cta, id] {
      const NamedBarrier& n = cta.barriers[id];
      return fmt::format("waits on barrier {}: {} of {} threads have arrived", id, n.arrived,
                         n.expected ? n.expected : cta.live_threads);
    };
    return Action::wait;
  }
  f.step = 0;
  w.clock.join(b.completed);
  if (in.mod[0] == 2) {
    if (in.mod[3] == 0) {
      uint8_t* d = dst_of(w, in.ops[0]);
      for_lanes(mask, [&](int l) { set<uint32_t>(d, l, b.result_count); });
    } else {
      set_predicate(w, in.ops[0], mask, (in.mod[3] == 1 ? b.result_and : b.result_or) ? ~0u : 0);
    }
  }
  return Action::next;
}

Action warp_sync(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  // Lanes of one mask may stand at different bar.warp.sync instructions.
  Mask member = get<uint32_t>(w.read(in.ops[0]), first_lane(mask)) & w.live;
  if (f.step == 0) {
    w.warpsync_arrived |= mask;
    f.step = 1;
    if ((w.warpsync_arrived & member) == member) {
      w.warpsync_arrived &= ~member;
      w.warpsync_released |= member;
      ++w.version;
    }
  }
  if (w.warpsync_released & mask) {
    w.warpsync_released &= ~mask;
    f.step = 0;
    return Action::next;
  }
  if ((w.warpsync_arrived & member) == member) {  // the missing lanes have exited meanwhile
    w.warpsync_arrived &= ~member;
    w.warpsync_released |= member & ~mask;
    ++w.version;
    f.step = 0;
    return Action::next;
  }
  f.wait_on(&w.version);
  f.describe_wait = [&w, member] {
    return fmt::format("waits at bar.warp.sync for lanes {:#010x}", member & ~w.warpsync_arrived);
  };
  return Action::wait;
}

void decode_barrier(Decode& d) {
  if (d.take("cluster")) {
    d.module.decode_cluster_barrier(d);
    return;
  }
  if (d.take("warp")) {
    d.take("sync");
    d.need_count(1, 1);
    d.src(d.parsed(0), 4);
    d.out.run = warp_sync;
    return;
  }
  d.take("cta");
  // "bar" is "barrier.aligned".
  bool is_aligned = d.take("aligned") || d.in().opcode == "bar";
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of({"sync", "arrive", "red"}));
  d.out.mod[1] = is_aligned;
  d.out.run = barrier;
  if (d.out.mod[0] == 2) {
    d.out.mod[3] = static_cast<uint32_t>(d.need_one_of({"popc", "and", "or"}));
    d.need_type();
    d.need_count(3, 4);
    d.dst(d.parsed(0), d.out.mod[3] == 0 ? 4 : 0, false);
    d.src(d.parsed(1), 4);
    d.out.mod[2] = d.count() == 4;
    if (d.count() == 4)
      d.src(d.parsed(2), 4);
    else
      d.none();
    d.src(d.parsed(d.count() - 1), 0);
    return;
  }
  d.need_count(1, 2);
  d.none();
  d.src(d.parsed(0), 4);
  d.out.mod[2] = d.count() == 2;
  if (d.count() == 2)
    d.src(d.parsed(1), 4);
  else if (d.out.mod[0] == 1)
    d.fail("bar.arrive needs a thread count");
  else
    d.none();
}

// --- barrier.cluster ---

uint32_t live_in_cluster(const Cluster& cluster) {
  uint32_t n = 0;
  for (const auto& cta : cluster.ctas) n += cta->live_threads;
  return n;
}

/// Threads that exit count as arrived: a phase completes when every live thread has arrived in it.
void complete_cluster_phase(Cluster& cluster) {
  if (cluster.cluster_arrived == 0) return;
  uint32_t missing = 0;
  for (const auto& cta : cluster.ctas)
    for (const auto& w : cta->warps)
      missing += static_cast<uint32_t>(std::popcount(w->live & ~w->cluster_arrived));
  if (missing) return;
  for (const auto& cta : cluster.ctas)
    for (const auto& w : cta->warps) {
      w->cluster_may_wait |= w->cluster_arrived;
      w->cluster_arrived = 0;
    }
  cluster.cluster_completed.join(cluster.cluster_arriving);
  cluster.cluster_arrived = 0;
  ++cluster.cluster_phase;
  ++cluster.events;
}

/// mod[0]: aligned.
Action cluster_arrive(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (in.mod[0] && !aligned(w, f, mask)) return Action::wait;
  if ((w.cluster_arrived | w.cluster_may_wait) & mask)
    throw Fault(Check::illegal_instruction,
                "barrier.cluster.arrive twice without barrier.cluster.wait between");
  w.cluster_arrived |= mask;
  w.cta->cluster->cluster_arrived += static_cast<uint32_t>(std::popcount(mask));
  // Also for .relaxed: kernels pair it with fence.mbarrier_init, and what else it leaves unordered is not
  // told apart here.
  w.cta->cluster->cluster_arriving.join(w.release());
  ++w.cta->cluster->events;
  complete_cluster_phase(*w.cta->cluster);
  return Action::next;
}

Action cluster_wait(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (in.mod[0] && !aligned(w, f, mask)) return Action::wait;
  if ((w.cluster_may_wait & mask) == mask) {
    w.cluster_may_wait &= ~mask;
    w.clock.join(w.cta->cluster->cluster_completed);
    return Action::next;
  }
  if (((w.cluster_arrived | w.cluster_may_wait) & mask) != mask)
    throw Fault(Check::illegal_instruction, "barrier.cluster.wait without barrier.cluster.arrive before");
  Cluster& cluster = *w.cta->cluster;
  f.wait_on(&cluster.cluster_phase);
  f.describe_wait = [&cluster] {
    return fmt::format("waits on barrier.cluster: {} of {} threads have arrived", cluster.cluster_arrived,
                       live_in_cluster(cluster));
  };
  return Action::wait;
}

}  // namespace

void ModuleBuilder::decode_cluster_barrier(Decode& d) {
  int what = d.need_one_of({"arrive", "wait"});
  d.take_one_of({"release", "acquire", "relaxed"});
  d.out.mod[0] = d.take("aligned");
  d.need_count(0, 0);
  d.out.run = what == 0 ? cluster_arrive : cluster_wait;
}

void release_barriers_after_exit(Cta& cta) {
  for (NamedBarrier& b : cta.barriers)
    if (b.arrived > 0 && b.expected == 0 && b.arrived >= cta.live_threads) complete(cta, b);
  complete_cluster_phase(*cta.cluster);
}

void register_barrier(OpcodeTable& t) {
  t["bar"] = decode_barrier;
  t["barrier"] = decode_barrier;
}

}  // namespace gemmtune::emulator
