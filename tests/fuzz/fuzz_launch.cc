// libFuzzer target: any launch file is either refused with UsageError, or runs a small kernel for a bounded
// time. What it must never do is crash, hang, or take memory without bound.
#include <string>

#include "emulator/launch_run.h"
#include "gemm/error.h"
#include "tests/emulator/tma_copy.h"

namespace gemmtune::emulator {
namespace {

constexpr uint64_t kInstructions = 5'000;
constexpr size_t kMaxBytes = 1 << 20;
constexpr uint64_t kMaxThreads = 4096;

uint64_t count(const Dim3& d) { return uint64_t{d.x} * d.y * d.z; }

/// Files may be anything (a pipe that never ends), large launches take long without teaching anything.
bool worth_running(const LaunchFile& file) {
  size_t bytes = 0;
  for (const BufferSpec& buffer : file.buffers) {
    if (buffer.fill.kind == BufferFill::Kind::file || buffer.expect.kind == Expectation::Kind::file)
      return false;
    bytes += buffer.bytes();
    if (bytes > kMaxBytes) return false;
  }
  return count(file.grid) <= kMaxThreads && count(file.grid) * count(file.block) <= kMaxThreads;
}

}  // namespace
}  // namespace gemmtune::emulator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gemmtune;
  using namespace gemmtune::emulator;
  try {
    LaunchFile file = parse_launch_file({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    if (!worth_running(file)) return 0;
    Module module(kTmaCopy);
    LaunchRun run(file, module);
    LaunchConfig how;
    how.host_threads = 1;
    how.livelock_instructions = kInstructions / 2;
    how.instruction_limit = kInstructions;
    run.run(how);
    run.compare();
  } catch (const UsageError&) {
  }
  return 0;
}
