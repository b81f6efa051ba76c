#include "emulator/trace.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace gemmtune::emulator {
namespace {

using Kind = TraceEvent::Kind;
using CtaKey = std::tuple<uint32_t, uint32_t, uint32_t>;

CtaKey key(const Dim3& cta) { return {cta.x, cta.y, cta.z}; }
std::string text(const Dim3& cta) { return fmt::format("({},{},{})", cta.x, cta.y, cta.z); }

/// Index of the event that ends the one at `begin`, if the launch got there.
std::vector<std::optional<size_t>> ends_of(const std::vector<TraceEvent>& events) {
  std::vector<std::optional<size_t>> ends(events.size());
  std::map<std::tuple<CtaKey, uint32_t>, size_t> operations;
  std::map<std::tuple<CtaKey, int, std::string>, size_t> waits;
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& e = events[i];
    if (e.kind == Kind::issue) operations[{key(e.cta), e.id}] = i;
    if (e.kind == Kind::wait_begin) waits.emplace(std::tuple(key(e.cta), e.warp, e.what), i);
    if (e.kind == Kind::complete) {
      auto found = operations.find({key(e.cta), e.id});
      if (found != operations.end()) ends[found->second] = i;
    }
    if (e.kind == Kind::wait_end) {
      auto found = waits.find({key(e.cta), e.warp, e.what});
      if (found == waits.end()) continue;
      ends[found->second] = i;
      waits.erase(found);
    }
  }
  return ends;
}

}  // namespace

std::function<void(const TraceEvent&)> Trace::recorder() {
  return [this](const TraceEvent& event) { events_.push_back(event); };
}

std::string Trace::timeline(size_t max_lines) const {
  std::vector<std::optional<size_t>> ends = ends_of(events_);
  std::string out =
      fmt::format("{:>9} {:>9}  {:<10} {:>4} {:>5}  {}\n", "issued", "done", "CTA", "warp", "line", "what");
  size_t lines = 0, left = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    const TraceEvent& e = events_[i];
    if (e.kind == Kind::complete || e.kind == Kind::wait_end) continue;
    if (lines == max_lines) {
      ++left;
      continue;
    }
    ++lines;
    if (e.kind == Kind::phase) {
      out += fmt::format("{:>9} {:>9}  {:<10} {:>4} {:>5}  {}\n", "", e.time, text(e.cta), "", "", e.what);
      continue;
    }
    out += fmt::format("{:>9} {:>9}  {:<10} {:>4} {:>5}  {}{}\n", e.time,
                       ends[i] ? std::to_string(events_[*ends[i]].time) : "never", text(e.cta), e.warp,
                       e.line, e.kind == Kind::wait_begin ? "wait for " : "", e.what);
  }
  if (left > 0) out += fmt::format("and {} more\n", left);
  return out;
}

std::string Trace::chrome_json() const {
  using nlohmann::ordered_json;
  std::vector<std::optional<size_t>> ends = ends_of(events_);
  ordered_json all = ordered_json::array();
  std::map<CtaKey, size_t> processes;
  for (size_t i = 0; i < events_.size(); ++i) {
    const TraceEvent& e = events_[i];
    auto [process, fresh] = processes.try_emplace(key(e.cta), processes.size());
    size_t pid = process->second;
    if (fresh)
      all.push_back(
          {{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", "CTA " + text(e.cta)}}}});
    ordered_json common = {{"name", e.what}, {"pid", pid}, {"tid", e.warp}, {"ts", e.time}};
    if (e.line > 0) common["args"] = {{"ptx_line", e.line}};
    // What never ends gets no length: viewers draw it to the end of the trace.
    switch (e.kind) {
      case Kind::issue: {
        common.update({{"ph", "b"}, {"cat", "async"}, {"id", fmt::format("{}.{}", pid, e.id)}});
        all.push_back(common);
        if (!ends[i]) break;
        common["ph"] = "e";
        common["ts"] = events_[*ends[i]].time;
        all.push_back(common);
        break;
      }
      case Kind::wait_begin:
        common["ph"] = ends[i] ? "X" : "B";
        common["cat"] = "wait";
        if (ends[i]) common["dur"] = events_[*ends[i]].time - e.time;
        all.push_back(common);
        break;
      case Kind::phase:
        common.update({{"ph", "i"}, {"cat", "mbarrier"}, {"s", "p"}});
        all.push_back(common);
        break;
      case Kind::complete:
      case Kind::wait_end:
        break;
    }
  }
  return ordered_json{{"traceEvents", all}}.dump() + "\n";
}

}  // namespace gemmtune::emulator
