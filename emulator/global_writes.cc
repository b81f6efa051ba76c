#include "emulator/global_writes.h"

#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

constexpr int kRegionShift = 24;

GlobalWrites& writes_of(Warp& w) {
  // Clusters that communicate share one host thread and one record; the others cannot see each other's
  // writes.
  Launch& launch = *w.cta->cluster->launch;
  return launch.program->clusters_communicate ? launch.global_writes : w.cta->cluster->global_writes;
}

std::string describe(const Warp& w, const GlobalWrite& write) {
  uint32_t warps = w.cta->cluster->launch->warps;
  return fmt::format("thread {} of CTA rank {}{} wrote it at line {}",
                     write.moment.place % warps * 32 + write.lane, write.moment.place / warps,
                     write.cluster == w.cta->cluster ? "" : " of another cluster", write.line);
}

}  // namespace

void GlobalWrites::add(uint64_t address, uint32_t bytes, const GlobalWrite& write) {
  uint64_t region = address >> kRegionShift;
  Range* range = nullptr;
  for (Range& r : ranges_)
    if (r.region == region) range = &r;
  if (!range) range = &ranges_.emplace_back(Range{region, address, address});
  range->low = std::min(range->low, address);
  range->high = std::max(range->high, address + bytes);
  for (uint64_t line = address >> kShift; line <= (address + bytes - 1) >> kShift; ++line) {
    if (line != last_line_) {
      last_ = &lines_[line];
      last_line_ = line;
    }
    *last_ = write;
  }
}

void note_global_write(Warp& w, int lane, uint64_t address, uint32_t bytes) {
  Cluster& cluster = *w.cta->cluster;
  if (!cluster.launch->check_races || !cluster.launch->program->reads_global_async) return;
  writes_of(w).add(address, bytes,
                   {&cluster, w.global_fences.get(), w.now(), static_cast<uint32_t>(cluster.tick),
                    w.current ? w.current->line : 0, static_cast<uint8_t>(lane)});
}

void check_async_global_read(Warp& w, int lane, uint64_t address, uint64_t bytes, const char* what) {
  if (!w.cta->cluster->launch->check_races || bytes == 0) return;
  writes_of(w).visit(address, bytes, [&](const GlobalWrite& write) {
    bool same_cluster = write.cluster == w.cta->cluster;
    // The reader's own fence counts too; ticks of different clusters cannot be compared.
    bool fenced = write.fences->async[write.lane] > write.tick ||
                  w.global_fences->async[static_cast<size_t>(lane)] > (same_cluster ? write.tick : 0);
    if (!fenced)
      report_here(w, Severity::race, Check::proxy_fence,
                  fmt::format("the {} reads global memory at {:#x}; {} and no fence.proxy.async (or .global) "
                              "followed",
                              what, address, describe(w, write)));
    else if (same_cluster && !write.moment.known_to(w.clock))
      report_here(w, Severity::race, Check::proxy_fence,
                  fmt::format("the {} reads global memory at {:#x}; {} and no barrier orders the two", what,
                              address, describe(w, write)));
  });
}

void check_tensor_map_read(Warp& w, uint64_t address) {
  if (!w.cta->cluster->launch->check_races) return;
  writes_of(w).visit(address, 128, [&](const GlobalWrite& write) {
    bool same_cluster = write.cluster == w.cta->cluster;
    auto acquired = w.cta->acquired_maps.find(address);
    if (write.fences->tensormap[write.lane] <= write.tick)
      report_here(
          w, Severity::race, Check::proxy_fence,
          fmt::format("uses the tensor map at {:#x}; {} and no fence.proxy.tensormap::generic.release "
                      "followed",
                      address, describe(w, write)));
    else if (acquired == w.cta->acquired_maps.end() || (same_cluster && acquired->second <= write.tick))
      report_here(w, Severity::race, Check::proxy_fence,
                  fmt::format("uses the tensor map at {:#x}; {} and this CTA has not executed "
                              "fence.proxy.tensormap::generic.acquire on it since",
                              address, describe(w, write)));
  });
}

}  // namespace gemmtune::emulator
