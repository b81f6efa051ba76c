#include "gpu/nvml.h"

#include <chrono>

namespace gemmtune {
namespace {

constexpr int kSuccess = 0;
constexpr int kNotFound = 6;        // NVML_ERROR_NOT_FOUND: no process ran in that time
constexpr int kClockSm = 1;         // NVML_CLOCK_SM
constexpr int kTemperatureGpu = 0;  // NVML_TEMPERATURE_GPU

}  // namespace

Nvml::Nvml()
    : library_({"libnvidia-ml.so.1", "libnvidia-ml.so", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"}) {
  int (*init)() = nullptr;
  if (!library_.load(init, "nvmlInit_v2")) return;
  bool complete = library_.load(shutdown_, "nvmlShutdown") &&
                  library_.load(handle_by_uuid_, "nvmlDeviceGetHandleByUUID") &&
                  library_.load(clock_info_, "nvmlDeviceGetClockInfo") &&
                  library_.load(power_usage_, "nvmlDeviceGetPowerUsage") &&
                  library_.load(temperature_, "nvmlDeviceGetTemperature");
  // Renamed in driver 535; the old name still answers on older ones.
  if (!library_.load(event_reasons_, "nvmlDeviceGetCurrentClocksEventReasons"))
    library_.load(event_reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (!library_.load(running_, "nvmlDeviceGetComputeRunningProcesses_v3"))
    library_.load(running_, "nvmlDeviceGetComputeRunningProcesses_v2");
  library_.load(utilization_, "nvmlDeviceGetProcessUtilization");
  ready_ = complete && init() == kSuccess;
}

Nvml::~Nvml() {
  if (ready_) shutdown_();
}

void* Nvml::device(const std::string& uuid) const {
  void* device = nullptr;
  return ready_ && handle_by_uuid_(uuid.c_str(), &device) == kSuccess ? device : nullptr;
}

void Nvml::read(const std::string& uuid, Sample& sample) const {
  void* gpu = device(uuid);
  if (gpu == nullptr) return;
  unsigned value = 0;
  if (clock_info_(gpu, kClockSm, &value) == kSuccess) sample.sm_clock_khz = static_cast<int>(value) * 1000;
  if (power_usage_(gpu, &value) == kSuccess) sample.power_mw = static_cast<int>(value);
  if (temperature_(gpu, kTemperatureGpu, &value) == kSuccess) sample.temperature_c = static_cast<int>(value);
  unsigned long long reasons = 0;
  if (event_reasons_ != nullptr && event_reasons_(gpu, &reasons) == kSuccess) sample.event_reasons = reasons;
}

int Nvml::sm_clock_khz(const std::string& uuid) const {
  void* gpu = device(uuid);
  unsigned mhz = 0;
  return gpu != nullptr && clock_info_(gpu, kClockSm, &mhz) == kSuccess ? static_cast<int>(mhz) * 1000 : 0;
}

std::vector<unsigned> Nvml::compute_processes(const std::string& uuid) const {
  void* gpu = device(uuid);
  if (gpu == nullptr || running_ == nullptr) return {};
  std::vector<ProcessInfo> found(64);
  auto count = static_cast<unsigned>(found.size());
  if (running_(gpu, &count, found.data()) != kSuccess) return {};
  std::vector<unsigned> pids;
  for (unsigned i = 0; i < count; ++i) pids.push_back(found[i].pid);
  return pids;
}

std::optional<std::vector<unsigned>> Nvml::busy_processes(const std::string& uuid, int seconds) const {
  void* gpu = device(uuid);
  if (gpu == nullptr || utilization_ == nullptr) return std::nullopt;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto since = std::chrono::duration_cast<std::chrono::microseconds>(now - std::chrono::seconds(seconds));
  std::vector<ProcessUtilization> found(256);
  auto count = static_cast<unsigned>(found.size());
  int status = utilization_(gpu, found.data(), &count, static_cast<unsigned long long>(since.count()));
  if (status == kNotFound) return std::vector<unsigned>();
  if (status != kSuccess) return std::nullopt;
  std::vector<unsigned> pids;
  for (unsigned i = 0; i < count; ++i)
    if (found[i].sm > 0) pids.push_back(found[i].pid);
  return pids;
}

}  // namespace gemmtune
