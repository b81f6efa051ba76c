// NVML, loaded at run time and optional: clock, power, temperature and event reasons beside each sample.
// Only the handful of functions used here are declared, by their documented C signatures (NVML API
// reference), so that no NVML header is needed to build.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/dynamic_library.h"
#include "search/trial.h"

namespace gemmtune {

class Nvml {
 public:
  /// Empty (false) where there is no NVML.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  explicit operator bool() const { return ready_; }
  const std::string& path() const { return library_.path(); }

  /// Fills what NVML tells; leaves zeros where it does not. `uuid` as CUDA prints it ("GPU-...").
  void read(const std::string& uuid, Sample& sample) const;
  /// 0 where it is not known.
  int sm_clock_khz(const std::string& uuid) const;
  /// Process ids with a compute context on the GPU. Inside a container they may be the host's, or missing.
  std::vector<unsigned> compute_processes(const std::string& uuid) const;
  /// Those of them whose kernels ran within the last `seconds`; nothing where the driver does not say.
  std::optional<std::vector<unsigned>> busy_processes(const std::string& uuid, int seconds) const;

 private:
  /// Twins of nvmlProcessInfo_t (its second version, the v2 and v3 calls') and
  /// nvmlProcessUtilizationSample_t.
  struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
  };
  struct ProcessUtilization {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;  // percent
  };
  void* device(const std::string& uuid) const;

  DynamicLibrary library_;
  bool ready_ = false;
  int (*shutdown_)() = nullptr;
  int (*handle_by_uuid_)(const char*, void**) = nullptr;
  int (*clock_info_)(void*, int, unsigned*) = nullptr;
  int (*power_usage_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*event_reasons_)(void*, unsigned long long*) = nullptr;
  int (*running_)(void*, unsigned*, ProcessInfo*) = nullptr;
  int (*utilization_)(void*, ProcessUtilization*, unsigned*, unsigned long long) = nullptr;
};

}  // namespace gemmtune
