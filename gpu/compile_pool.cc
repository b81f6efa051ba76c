#include "gpu/compile_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>

#include "gemm/error.h"
#include "gpu/nvrtc.h"
#include "search/trial_json.h"

namespace gemmtune {
namespace {

using Clock = std::chrono::steady_clock;

/// For a source to leave through the socket. A worker that does not read it in this time is past saving, and
/// its deadline will say so.
constexpr std::chrono::seconds kSendPatience{5};

}  // namespace

CompilePool::CompilePool(int jobs) : CompilePool(jobs, Limits()) {}

CompilePool::CompilePool(int jobs, Limits limits)
    : limits_(limits), workers_(static_cast<size_t>(std::max(1, jobs))) {
  // Loaded here once to fail early and to learn the version; compilations happen in the workers.
  toolchain_.version = Nvrtc().version();
}

void CompilePool::submit(CompileRequest request) {
  waiting_.push_back(std::move(request));
  start_waiting();
}

void CompilePool::start_waiting() {
  for (Worker& worker : workers_) {
    if (waiting_.empty()) return;
    if (!worker.key.empty()) continue;
    if (worker.process && worker.done >= limits_.recycle_after) worker.process.reset();
    if (!worker.process) {
      worker.process = std::make_unique<WorkerProcess>("compile", std::to_string(limits_.memory_bytes));
      worker.done = 0;
    }
    CompileRequest request = std::move(waiting_.front());
    waiting_.pop_front();
    worker.key = request.key;
    worker.started = Clock::now();
    // A failed send shows as a closed channel at the next poll.
    worker.process->channel().send(
        {{"key", request.key}, {"source", request.source}, {"target", request.target}}, kSendPatience);
  }
}

CompileResult CompilePool::failed(const Worker& worker, std::string why) const {
  CompileResult result;
  result.key = worker.key;
  result.log = std::move(why);
  result.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - worker.started).count();
  return result;
}

void CompilePool::finish(Worker& worker, CompileResult result) {
  finished_[worker.key] = std::move(result);
  worker.key.clear();
  ++worker.done;
}

bool CompilePool::poll(std::chrono::milliseconds patience) {
  std::vector<pollfd> descriptors;
  std::vector<Worker*> busy;
  for (Worker& worker : workers_) {
    if (worker.key.empty()) continue;
    descriptors.push_back({worker.process->channel().fd(), POLLIN, 0});
    busy.push_back(&worker);
  }
  if (busy.empty()) return false;
  ::poll(descriptors.data(), descriptors.size(), static_cast<int>(patience.count()));
  bool any = false;
  for (size_t i = 0; i < busy.size(); ++i) {
    Worker& worker = *busy[i];
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(worker.started + limits_.deadline -
                                                                      Clock::now());
    if (descriptors[i].revents == 0) {
      if (left.count() > 0) continue;
      worker.process->kill();
      worker.process.reset();
      finish(worker, failed(worker, fmt::format("the compiler did not finish within {} s",
                                                double(limits_.deadline.count()) / 1000)));
      any = true;
      continue;
    }
    nlohmann::json message;
    if (worker.process->channel().receive(message, std::max(left, std::chrono::milliseconds(1000))) ==
        Channel::Received::message) {
      CompileResult result;
      result.key = worker.key;
      result.ok = message.at("ok");
      result.cubin = from_blob(message.at("cubin"));
      result.ptx = message.at("ptx");
      result.log = message.at("log");
      result.evidence = message.at("evidence");
      result.compile_ms = message.at("compile_ms");
      finish(worker, std::move(result));
    } else {
      std::string end = worker.process->kill();
      worker.process.reset();
      finish(worker, failed(worker, fmt::format("the compiler crashed: {}", end)));
    }
    any = true;
  }
  start_waiting();
  return any;
}

CompileResult CompilePool::take(const std::string& key) {
  while (true) {
    auto found = finished_.find(key);
    if (found != finished_.end()) {
      CompileResult result = std::move(found->second);
      finished_.erase(found);
      return result;
    }
    bool known =
        std::ranges::any_of(workers_, [&](const Worker& worker) { return worker.key == key; }) ||
        std::ranges::any_of(waiting_, [&](const CompileRequest& request) { return request.key == key; });
    if (!known) throw std::logic_error("take() of a compilation that was never submitted");
    poll(std::chrono::milliseconds(1000));
  }
}

std::vector<int> CompilePool::worker_pids() const {
  std::vector<int> pids;
  for (const Worker& worker : workers_)
    if (worker.process) pids.push_back(worker.process->pid());
  return pids;
}

int run_compile_worker(Channel channel, [[maybe_unused]] int64_t memory_bytes) {
#ifndef __SANITIZE_ADDRESS__  // the sanitizer maps terabytes of shadow
  rlimit cap{static_cast<rlim_t>(memory_bytes), static_cast<rlim_t>(memory_bytes)};
  ::setrlimit(RLIMIT_AS, &cap);
#endif
  Nvrtc nvrtc;
  nlohmann::json message;
  while (channel.receive(message)) {
    CompileResult result = nvrtc.compile({message.at("key"), message.at("source"), message.at("target")});
    bool sent = channel.send({{"ok", result.ok},
                              {"cubin", to_blob(result.cubin)},
                              {"ptx", result.ptx},
                              {"log", result.log},
                              {"evidence", result.evidence},
                              {"compile_ms", result.compile_ms}});
    if (!sent) break;
  }
  return 0;
}

}  // namespace gemmtune
