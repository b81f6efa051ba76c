#include "gemm/arch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "gemm/error.h"
#include "gemm/suggest.h"

namespace gemmtune {
namespace {

constexpr int kSmem227KiB = 232448;

constexpr std::array<ArchSpec, 3> kArchs = {{
    {"sm_100a", 10, 0, kSmem227KiB, 65536, 255, 1024, 8, 512, true, false, 8192, "B200"},
    {"sm_103a", 10, 3, kSmem227KiB, 65536, 255, 1024, 8, 512, true, false, 8192, "B300"},
    {"sm_90a", 9, 0, kSmem227KiB, 65536, 255, 1024, 8, 0, false, true, 4096, "H200"},
}};

// Rates: vendor sheets as collected in ptx-facts section 7; L2 of B200 is one measured article's figure.
constexpr std::array<DeviceSpec, 4> kDevices = {{
    {"B200", 148, 126ll << 20, 8.0, 2250},
    {"B300", 148, 126ll << 20, 8.0, 2250},
    {"H200", 132, 60ll << 20, 4.8, 989},
    {"H100", 132, 50ll << 20, 3.35, 989},
}};

}  // namespace

std::span<const ArchSpec> archs() { return kArchs; }

const ArchSpec& find_arch(std::string_view name) {
  std::vector<std::string> known;
  for (const ArchSpec& arch : kArchs) {
    if (arch.name == name) return arch;
    known.emplace_back(arch.name);
  }
  throw UsageError(fmt::format("unknown architecture '{}'{}: one of {}", name, did_you_mean(name, known),
                               fmt::join(known, ", ")));
}

const ArchSpec* arch_for_compute_capability(int major, int minor) {
  auto found = std::ranges::find_if(
      kArchs, [&](const ArchSpec& arch) { return arch.cc_major == major && arch.cc_minor == minor; });
  return found == kArchs.end() ? nullptr : &*found;
}

std::span<const DeviceSpec> device_specs() { return kDevices; }

const DeviceSpec* find_device_spec(std::string_view name) {
  for (const DeviceSpec& device : kDevices) {
    size_t at = name.find(device.name);
    if (at == std::string_view::npos) continue;
    size_t end = at + device.name.size();
    bool starts_word = at == 0 || name[at - 1] == ' ';
    bool ends_word = end == name.size() || name[end] == ' ' || name[end] == '-';
    if (starts_word && ends_word) return &device;
  }
  return nullptr;
}

}  // namespace gemmtune
