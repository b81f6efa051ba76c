// Who may touch shared memory when: each access is checked against the last ones of the same 16 bytes. What
// counts is what the warp is entitled to know by barriers (clock.h), not what has happened under this
// schedule.
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

std::string describe(const Cluster& cluster, uint32_t operation) {
  const OperationRecord& r = cluster.async.operation(operation);
  return fmt::format("the {} at line {} (CTA rank {}, warp {})", r.what, r.line, r.rank, r.warp);
}

template <class F>
void for_granules(Cta& cta, uint32_t offset, uint32_t bytes, F body) {
  uint32_t last = (offset + bytes - 1) >> kShadowShift;
  for (uint32_t g = offset >> kShadowShift; g <= last; ++g) body(cta.shadow[g], g << kShadowShift);
}

/// Bytes of [offset, offset + bytes) in the granule at `at`, one bit each.
uint16_t bytes_inside(uint32_t at, uint32_t offset, uint32_t bytes) {
  uint32_t low = offset > at ? offset - at : 0, high = std::min<uint32_t>(16, offset + bytes - at);
  return static_cast<uint16_t>((0xffffu >> (16 - (high - low))) << low);
}

uint32_t writer_place(const Cluster& cluster, const Shadow& s) {
  return s.generic_rank * cluster.launch->warps + s.generic_thread / 32;
}

/// The last generic write is by this warp or ordered before it.
bool knows_writer(const Warp& w, const Shadow& s) {
  return w.clock.of(writer_place(*w.cta->cluster, s)) >= s.generic_event;
}

void forget_readers(Cta& cta, Shadow& s) {
  s.reader_event = 0;
  if (!s.reader_set) return;
  cta.reader_sets[s.reader_set].clear();
  cta.free_reader_sets.push_back(s.reader_set);
  s.reader_set = 0;
}

void add_to_set(Cta& cta, Shadow& s, uint32_t place, uint32_t event, int32_t line) {
  auto& set = cta.reader_sets[s.reader_set];
  if (set.size() <= place) set.resize(place + 1);
  set[place] = {event, line};
}

void note_reader(Warp& w, Cta& cta, Shadow& s) {
  uint32_t event = w.clock.at[w.place];
  if (s.reader_place == w.place && s.reader_event == event) return;
  int32_t line = w.current ? w.current->line : 0;
  bool alone = !s.reader_set && (s.reader_event == 0 || s.reader_place == w.place ||
                                 w.clock.of(s.reader_place) >= s.reader_event);
  if (!alone) {
    if (!s.reader_set) {
      if (cta.reader_sets.empty()) cta.reader_sets.emplace_back();
      if (cta.free_reader_sets.empty()) {
        cta.free_reader_sets.push_back(static_cast<uint32_t>(cta.reader_sets.size()));
        cta.reader_sets.emplace_back();
      }
      s.reader_set = cta.free_reader_sets.back();
      cta.free_reader_sets.pop_back();
      add_to_set(cta, s, s.reader_place, s.reader_event, s.reader_line);
    }
    add_to_set(cta, s, w.place, event, line);
  }
  s.reader_place = static_cast<uint16_t>(w.place);
  s.reader_event = event;
  s.reader_line = line;
}

void check_readers(Warp& w, const Cta& cta, const Shadow& s, uint32_t at) {
  auto check = [&](uint32_t place, uint32_t event, int32_t line) {
    if (event == 0 || w.clock.of(place) >= event) return;
    uint32_t warps = w.cta->cluster->launch->warps;
    report_here(
        w, Severity::race, Check::smem_race,
        fmt::format("overwrites shared offset {:#x} of CTA rank {}, which warp {} of CTA rank {} reads "
                    "at line {}: nothing orders that read before this copy",
                    at, cta.rank, place % warps, place / warps, line));
  };
  if (!s.reader_set) {
    check(s.reader_place, s.reader_event, s.reader_line);
    return;
  }
  const auto& set = cta.reader_sets[s.reader_set];
  for (uint32_t place = 0; place < set.size(); ++place) check(place, set[place].first, set[place].second);
}

}  // namespace

bool knows(Warp& w, uint32_t operation) {
  if (operation == 0 || operation == w.known_operation) return true;
  const OperationRecord& r = w.cta->cluster->async.operation(operation);
  // The multiplies of one thread alternate within a stage: a queue is asked once for all of them.
  if (r.queue && r.queue == w.known_queue && r.sequence <= w.known_sequence) return true;
  if (uint64_t up_to = r.queue ? r.known_up_to(w.clock) : 0) {
    w.known_queue = r.queue;
    w.known_sequence = up_to;
    return true;
  }
  if (!r.is_known_to(w.clock)) return false;
  w.known_operation = operation;
  return true;
}

void note_generic_write(Warp& w, int lane, Cta& cta, uint32_t offset, uint32_t bytes) {
  Cluster& cluster = *w.cta->cluster;
  ++cluster.events;
  if (!cluster.launch->check_races) return;
  uint32_t event = w.clock.at[w.place];
  for_granules(cta, offset, bytes, [&](Shadow& s, uint32_t at) {
    if (!knows(w, s.async_reader))
      report_here(
          w, Severity::race, Check::smem_race,
          fmt::format("writes shared offset {:#x}, which {} may still read: nobody waited for its completion",
                      at, describe(cluster, s.async_reader)));
    if (!knows(w, s.async_writer))
      report_here(w, Severity::race, Check::smem_race,
                  fmt::format("writes shared offset {:#x}, which {} may still write", at,
                              describe(cluster, s.async_writer)));
    s.async_reader = s.async_writer = 0;
    bool same = s.generic_tick && s.generic_event == event && writer_place(cluster, s) == w.place;
    s.generic_bytes = static_cast<uint16_t>((same ? s.generic_bytes : 0) | bytes_inside(at, offset, bytes));
    s.generic_tick = static_cast<uint32_t>(cluster.tick);
    s.generic_event = event;
    s.generic_thread = static_cast<uint16_t>(w.index * 32 + lane);
    s.generic_rank = static_cast<uint16_t>(w.cta->rank);
    s.generic_line = w.current ? w.current->line : 0;
  });
}

void note_generic_read(Warp& w, Cta& cta, uint32_t offset, uint32_t bytes) {
  Cluster& cluster = *w.cta->cluster;
  if (!cluster.launch->check_races) return;
  for_granules(cta, offset, bytes, [&](Shadow& s, uint32_t at) {
    if (!knows(w, s.async_writer))
      report_here(
          w, Severity::race, Check::smem_race,
          fmt::format("reads shared offset {:#x} before {} has landed: nobody waited for its completion", at,
                      describe(cluster, s.async_writer)));
    if (s.generic_tick && (s.generic_bytes & bytes_inside(at, offset, bytes)) && !knows_writer(w, s))
      report_here(
          w, Severity::race, Check::smem_race,
          fmt::format("reads shared offset {:#x}, which thread {} of CTA rank {} writes at line {}: no "
                      "barrier orders the two",
                      at, s.generic_thread, s.generic_rank, s.generic_line));
    note_reader(w, cta, s);
  });
}

void note_async_read(Warp& w, int lane, Cta& cta, uint32_t offset, uint32_t bytes, uint32_t operation) {
  Cluster& cluster = *w.cta->cluster;
  if (!cluster.launch->check_races) return;
  for_granules(cta, offset, bytes, [&](Shadow& s, uint32_t at) {
    if (s.generic_tick) {
      const Cta& writer_cta = *cluster.ctas[s.generic_rank];
      uint32_t writer_fence = writer_cta.warps[s.generic_thread / 32]->fence_tick[s.generic_thread % 32];
      if (writer_fence <= s.generic_tick && w.fence_tick[lane] <= s.generic_tick)
        report_here(
            w, Severity::race, Check::proxy_fence,
            fmt::format(
                "reads shared offset {:#x} through the async proxy; thread {} of CTA rank {} wrote it at "
                "line {} and no fence.proxy.async followed",
                at, s.generic_thread, s.generic_rank, s.generic_line));
      if (!knows_writer(w, s))
        report_here(
            w, Severity::race, Check::smem_race,
            fmt::format("reads shared offset {:#x}, which thread {} of CTA rank {} writes at line {}: "
                        "no barrier orders the two",
                        at, s.generic_thread, s.generic_rank, s.generic_line));
    }
    if (!knows(w, s.async_writer))
      report_here(
          w, Severity::race, Check::smem_race,
          fmt::format("reads shared offset {:#x} before {} has landed: nobody waited for its completion", at,
                      describe(cluster, s.async_writer)));
    s.async_reader = operation;
  });
}

void note_async_write(Warp& w, Cta& cta, uint32_t offset, uint32_t bytes, uint32_t operation) {
  Cluster& cluster = *w.cta->cluster;
  if (!cluster.launch->check_races) return;
  for_granules(cta, offset, bytes, [&](Shadow& s, uint32_t at) {
    if (s.async_reader != operation && !knows(w, s.async_reader))
      report_here(
          w, Severity::race, Check::smem_race,
          fmt::format(
              "overwrites shared offset {:#x} of CTA rank {}, which {} may still read: nobody waited for "
              "its completion",
              at, cta.rank, describe(cluster, s.async_reader)));
    if (s.async_writer != operation && !knows(w, s.async_writer))
      report_here(
          w, Severity::race, Check::smem_race,
          fmt::format(
              "overwrites shared offset {:#x} of CTA rank {}, which {} fills and nobody has waited for", at,
              cta.rank, describe(cluster, s.async_writer)));
    if (s.generic_tick && !knows_writer(w, s))
      report_here(w, Severity::race, Check::smem_race,
                  fmt::format("overwrites shared offset {:#x} of CTA rank {}, which thread {} of CTA rank {} "
                              "writes at line {}: no barrier orders the two",
                              at, cta.rank, s.generic_thread, s.generic_rank, s.generic_line));
    check_readers(w, cta, s, at);
    forget_readers(cta, s);
    s.async_writer = operation;
    s.async_reader = 0;
    s.generic_tick = 0;
  });
}

}  // namespace gemmtune::emulator
