#include "gpu/nvml.h"

namespace gemmtune {
namespace {

constexpr int kSuccess = 0;
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
  ready_ = complete && init() == kSuccess;
}

Nvml::~Nvml() {
  if (ready_) shutdown_();
}

void Nvml::read(const std::string& uuid, Sample& sample) const {
  void* device = nullptr;
  if (!ready_ || handle_by_uuid_(uuid.c_str(), &device) != kSuccess) return;
  unsigned value = 0;
  if (clock_info_(device, kClockSm, &value) == kSuccess) sample.sm_clock_khz = static_cast<int>(value) * 1000;
  if (power_usage_(device, &value) == kSuccess) sample.power_mw = static_cast<int>(value);
  if (temperature_(device, kTemperatureGpu, &value) == kSuccess)
    sample.temperature_c = static_cast<int>(value);
  unsigned long long reasons = 0;
  if (event_reasons_ != nullptr && event_reasons_(device, &reasons) == kSuccess)
    sample.event_reasons = reasons;
}

}  // namespace gemmtune
