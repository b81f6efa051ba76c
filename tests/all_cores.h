// Independent work on as many threads as there are cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gpu/nvrtc.h"
#include "kernel_templates/render.h"

namespace gemmtune {

/// Calls `work(i)` once for each i below `count`.
template <class Work>
void on_all_cores(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (size_t at = next++; at < count; at = next++) work(at);
    });
}

/// Compiles row.variant into row.compiled, in this process: NVRTC is thread-safe.
template <class Row>
void compile_all(std::vector<Row>& rows) {
  Nvrtc nvrtc;
  // Rows that differ in launch parameters alone have the same source.
  std::vector<std::string> sources;
  std::map<std::string, size_t> first;
  std::vector<size_t> distinct;
  for (const Row& row : rows) {
    sources.push_back(render(row.variant) + std::string(row.variant.arch->name));
    if (first.try_emplace(sources.back(), sources.size() - 1).second) distinct.push_back(sources.size() - 1);
  }
  on_all_cores(distinct.size(), [&](size_t i) {
    Row& row = rows[distinct[i]];
    row.compiled = nvrtc.compile({"", render(row.variant), std::string(row.variant.arch->name)});
  });
  for (size_t i = 0; i < rows.size(); ++i) rows[i].compiled = rows[first.at(sources[i])].compiled;
}

}  // namespace gemmtune
