// Independent work on as many threads as there are cores.
#pragma once

#include <algorithm>
#include <atomic>
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
  on_all_cores(rows.size(), [&](size_t i) {
    const Variant& v = rows[i].variant;
    rows[i].compiled = nvrtc.compile({"", render(v), std::string(v.arch->name)});
  });
}

}  // namespace gemmtune
