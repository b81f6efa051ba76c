#include "gpu/sampler.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "search/stopping.h"

namespace gemmtune {
namespace {

constexpr double kBatchUs = 3000;               // burst: batches of about 3 ms ...
constexpr std::chrono::milliseconds kPause(8);  // ... with pauses of 8 ms
constexpr double kSustainedUs = 700000;         // sustained: 0.7 s timed after 0.7 s untimed
/// More launches than this are no better average, and a graph of more takes long to build.
constexpr double kMaxBatch = 4000, kMaxGraphNodes = 1000;
/// Bursts of pre-heating: at least so many, so that a clock still on its way is not taken for a settled one;
/// at most so many, because under the power cap it may never settle. Without NVML a fixed number, 0.3 s.
constexpr int kMinPreheat = 10, kMaxPreheat = 100, kBlindPreheat = 30;

/// nvmlClocksEventReason bits: HW slowdown, SW thermal, HW thermal, HW power brake. Not among them: the power
/// cap (0x4), which is how the device runs sustained.
constexpr uint64_t kThrottled = 0x08 | 0x20 | 0x40 | 0x80;

int launches_for(const Rotation& candidate, double us, double at_most) {
  return static_cast<int>(std::clamp(us / candidate.estimate_us, 1.0, at_most));
}

/// Launches captured from a stream, ready to be replayed.
class Graph {
 public:
  template <class Work>
  Graph(CUstream stream, Work work) {
    const CudaDriver& cuda = CudaDriver::get();
    check(cuda.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    work();
    CUgraph graph = nullptr;
    check(cuda.StreamEndCapture(stream, &graph), "cuStreamEndCapture");
    CUresult result = cuda.GraphInstantiateWithFlags(&executable_, graph, 0);
    cuda.GraphDestroy(graph);
    check(result, "cuGraphInstantiateWithFlags");
  }
  ~Graph() {
    if (executable_ != nullptr) CudaDriver::get().GraphExecDestroy(executable_);
  }
  Graph(const Graph&) = delete;
  void launch(CUstream stream) const {
    check(CudaDriver::get().GraphLaunch(executable_, stream), "cuGraphLaunch");
  }

 private:
  CUgraphExec executable_ = nullptr;
};

/// Milliseconds that the device spends on what `work` enqueues.
/// `meanwhile` runs on the host while the device works.
template <class Work, class Meanwhile>
double device_ms(CUstream stream, CUevent start, CUevent stop, Work work, Meanwhile meanwhile) {
  const CudaDriver& cuda = CudaDriver::get();
  check(cuda.EventRecord(start, stream), "cuEventRecord");
  work();
  check(cuda.EventRecord(stop, stream), "cuEventRecord");
  meanwhile();
  check(cuda.EventSynchronize(stop), "kernel");
  float ms = 0;
  check(cuda.EventElapsedTime(&ms, start, stop), "cuEventElapsedTime");
  return double(ms);
}

}  // namespace

Sampler::Sampler(CUstream stream, std::string uuid, const std::vector<unsigned>& processes_before)
    : stream_(stream),
      uuid_(std::move(uuid)),
      neighbours_(processes_before, nvml_.compute_processes(uuid_), static_cast<unsigned>(::getpid())) {
  check(CudaDriver::get().EventCreate(&start_, CU_EVENT_DEFAULT), "cuEventCreate");
  check(CudaDriver::get().EventCreate(&stop_, CU_EVENT_DEFAULT), "cuEventCreate");
}

void Sampler::run(Rotation& candidate, int count, bool warm) const {
  for (int i = 0; i < count; ++i) {
    if (warm) candidate.next = 0;
    candidate.sets[candidate.next]->run(stream_);
    candidate.next = (candidate.next + 1) % candidate.sets.size();
  }
}

double Sampler::timed_us(Rotation& candidate, int count, bool warm) const {
  return device_ms(
             stream_, start_, stop_, [&] { run(candidate, count, warm); }, [] {}) *
         1000 / count;
}

void Sampler::estimate(Rotation& candidate, bool warm) const {
  if (candidate.estimate_us > 0) return;
  timed_us(candidate, 1, warm);  // the first launch of a kernel loads it
  candidate.estimate_us = timed_us(candidate, 3, warm);
}

void Sampler::preheat(Rotation& candidate, bool warm) {
  if (preheated_) return;
  std::vector<int> clocks_khz;
  for (int i = 1; i <= kMaxPreheat; ++i) {
    std::this_thread::sleep_for(kPause);
    int count = launches_for(candidate, 1.25 * kBatchUs, kMaxBatch);
    candidate.estimate_us = timed_us(candidate, count, warm);
    clocks_khz.push_back(nvml_.sm_clock_khz(uuid_));
    if (clocks_khz.back() == 0 && i >= kBlindPreheat) break;
    if (i >= kMinPreheat && clock_is_settled(clocks_khz)) break;
  }
  preheated_ = true;
}

void Sampler::observe(Sample& sample) {
  nvml_.read(uuid_, sample);
  bool alone = !neighbours_.computing(std::chrono::steady_clock::now(), nvml_.compute_processes(uuid_),
                                      nvml_.busy_processes(uuid_, Neighbours::kMemory.count()));
  sample.mark = !alone                                     ? SampleMark::contended
                : (sample.event_reasons & kThrottled) != 0 ? SampleMark::throttled
                                                           : SampleMark::none;
}

Sample Sampler::burst(Rotation& candidate, bool warm) {
  estimate(candidate, warm);
  preheat(candidate, warm);
  std::this_thread::sleep_for(kPause);
  Sample sample;
  sample.launches = launches_for(candidate, kBatchUs, kMaxBatch);
  run(candidate, (sample.launches + 3) / 4, warm);
  sample.time_us = timed_us(candidate, sample.launches, warm);
  observe(sample);
  candidate.estimate_us = sample.time_us;
  return sample;
}

Sample Sampler::sustained(Rotation& candidate, bool warm) {
  estimate(candidate, warm);
  constexpr double kNoLimit = 1e7;
  run(candidate, launches_for(candidate, kSustainedUs, kNoLimit), warm);
  Sample sample;
  sample.launches = launches_for(candidate, kSustainedUs, kNoLimit);
  const CudaDriver& cuda = CudaDriver::get();
  double ms = device_ms(
      stream_, start_, stop_, [&] { run(candidate, sample.launches, warm); },
      [&] {
        // What the load does to the clock is seen while it lasts, and only once the untimed part is over.
        check(cuda.EventSynchronize(start_), "kernel");
        observe(sample);
      });
  sample.time_us = ms * 1000 / sample.launches;
  candidate.estimate_us = sample.time_us;
  return sample;
}

GraphResult Sampler::graph_pair(Rotation& candidate, bool warm) {
  estimate(candidate, warm);
  preheat(candidate, warm);
  int count = launches_for(candidate, kBatchUs, kMaxGraphNodes);
  Graph graph(stream_, [&] { run(candidate, count, warm); });
  GraphResult result;
  std::this_thread::sleep_for(kPause);
  run(candidate, (count + 3) / 4, warm);
  result.plain_us = timed_us(candidate, count, warm);
  std::this_thread::sleep_for(kPause);
  graph.launch(stream_);  // the first launch uploads it
  result.graph_us = device_ms(
                        stream_, start_, stop_, [&] { graph.launch(stream_); }, [] {}) *
                    1000 / count;
  return result;
}

}  // namespace gemmtune
