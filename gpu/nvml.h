// NVML, loaded at run time and optional: clock, power, temperature and event reasons beside each sample.
// Only the handful of functions used here are declared, by their documented C signatures (NVML API
// reference), so that no NVML header is needed to build.
#pragma once

#include <optional>
#include <string>

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

 private:
  DynamicLibrary library_;
  bool ready_ = false;
  int (*shutdown_)() = nullptr;
  int (*handle_by_uuid_)(const char*, void**) = nullptr;
  int (*clock_info_)(void*, int, unsigned*) = nullptr;
  int (*power_usage_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*event_reasons_)(void*, unsigned long long*) = nullptr;
};

}  // namespace gemmtune
