// libFuzzer target: any launch file is either refused with UsageError, or runs a small kernel for a bounded
// time. What it must never do is crash, hang, or take memory without bound.
#include <string>

#include "emulator/launch_run.h"
#include "gemm/error.h"

namespace gemmtune::emulator {
namespace {

constexpr uint64_t kInstructions = 5'000;
constexpr size_t kMaxBytes = 1 << 20;
constexpr uint64_t kMaxThreads = 4096;

/// One kernel with a tensor map, a pointer and a struct: what parameters may be.
constexpr const char* kKernel = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out, .param .align 8 .b8 where[16])
{
  .reg .b64 po, pm, lo;
  .reg .b32 x, y, lane, v;
  .reg .pred p;
  .shared .align 128 .b8 s[1024];
  .shared .align 8 .b8 bar[8];
  ld.param.u64 po, [out];
  mov.b64 pm, map;
  cvta.param.u64 pm, pm;
  ld.param.u32 x, [where+4];
  ld.param.u32 y, [where+8];
  mov.u32 lane, %tid.x;
  setp.eq.u32 p, lane, 0;
  @p mbarrier.init.shared::cta.b64 [bar], 1;
  @p fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
  @p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [pm, {x, y}], [bar];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
  @!p bra WAIT;
  shl.b32 v, lane, 2;
  cvt.u64.u32 lo, v;
  add.u64 lo, po, lo;
  st.global.u32 [lo], lane;
  ret;
}
)";

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
    Module module(kKernel);
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
