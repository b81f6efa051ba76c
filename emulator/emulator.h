// Public interface: a CPU that executes PTX for sm_90a and sm_100a.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/diagnosis.h"
#include "emulator/error.h"
#include "emulator/schedule.h"
#include "emulator/tensor_map.h"
#include "gemm/launch_plan.h"

namespace gemmtune::emulator {

/// Goes up when results or checks change: what an older emulator let pass is proven anew.
inline constexpr int kVersion = 2;

/// A point in the life of an asynchronous operation or a waiting warp, for timelines.
struct TraceEvent {
  enum class Kind : uint8_t { issue, complete, wait_begin, wait_end, phase };
  Kind kind = Kind::issue;
  uint64_t time = 0;  ///< instructions executed by the cluster so far: an order, not a duration
  Dim3 cta;
  int warp = 0;
  int line = 0;      ///< of the PTX; `complete` and `phase`: 0
  uint32_t id = 0;   ///< `issue` and `complete` of one operation of one CTA have the same
  std::string what;  ///< "TMA load of 16384 bytes to 0x400, mbarrier 0x8"; `complete`: empty
};

struct LaunchConfig {
  std::string kernel;
  Dim3 grid, block, cluster{0, 0, 0};  ///< cluster 0: what the kernel declares, else 1
  /// CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: where there is room, which the schedule decides: eager
  /// everywhere, lazy nowhere, random here and there.
  std::optional<Dim3> preferred_cluster;
  uint32_t dynamic_smem_bytes = 0;
  std::vector<uint8_t> params;  ///< raw parameter bytes, laid out as the kernel declares them
  Schedule schedule;
  int host_threads = 0;        ///< 0: as many as the host has
  int sm_count = 148;          ///< CTAs resident at once, one an SM
  bool tmem_from_top = false;  ///< first allocation at a column other than 0 (unless all 512 are taken)
  bool check_races = true;
  uint64_t livelock_instructions = 20'000'000;  ///< warp instructions without any effect
  uint64_t instruction_limit =
      0;  ///< warp instructions of one cluster, 0: none. Stops loops that do have effects
  std::function<void(const TraceEvent&)> trace;  ///< forces one host thread
};

struct LaunchResult {
  bool completed = false;  ///< every thread exited
  std::vector<Diagnosis> diagnoses;
  std::map<std::string, uint64_t> executed;  ///< warp instructions by mnemonic
  std::map<int, uint64_t> executed_by_line;
  uint64_t warp_instructions = 0;
  std::string printed;  ///< vprintf
  /// Completed without error or race. Warnings do not count.
  bool clean() const;
  /// All diagnoses, one a line.
  std::string text() const;
};

struct Program;
class Module;

/// One launch of a stream.
struct StreamLaunch {
  Module* module = nullptr;
  LaunchConfig config;
  /// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: it may start when every CTA of the launch before
  /// it has executed griddepcontrol.launch_dependents or exited; its griddepcontrol.wait waits for that
  /// launch to end. Without: it starts when the launch before it has ended.
  bool programmatic = false;
};

/// PTX that has been loaded. Global variables keep their values from launch to launch.
class Module {
 public:
  explicit Module(std::string ptx);  ///< throws PtxError
  const Program& program() const { return *program_; }
  std::vector<std::string> kernels() const;
  /// Emulated address and size of a .global or .const variable; {0, 0} if unknown.
  std::pair<uint64_t, uint64_t> variable(std::string_view name) const;
  std::vector<uint8_t>& memory() { return *memory_; }

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<std::vector<uint8_t>> memory_;
};

/// A GPU's memory and the means to launch on it.
class Device {
 public:
  Device();
  ~Device();
  /// Fresh memory holds 0xff bytes. Addresses are 64-bit and valid in kernels only.
  uint64_t allocate(uint64_t bytes, uint64_t align = 256);
  void free(uint64_t address);
  /// Throw std::out_of_range.
  void copy_in(uint64_t address, std::span<const uint8_t> bytes);
  void copy_out(uint64_t address, std::span<uint8_t> bytes) const;
  void fill(uint64_t address, uint8_t value, uint64_t bytes);
  LaunchResult launch(Module& module, const LaunchConfig& config);
  /// In order, results of each; stops behind one that does not complete. At most two overlap. When a
  /// programmatic launch starts depends on its schedule: eager at once, lazy at the end, random between.
  std::vector<LaunchResult> launch_stream(std::span<const StreamLaunch> launches);

 private:
  std::unique_ptr<class GlobalMemory> memory_;
};

/// Called with the result of every launch of this process, from the launching thread; for tests that count
/// what has run. Empty: nobody.
void observe_launches(std::function<void(const LaunchResult&)> observer);

}  // namespace gemmtune::emulator
