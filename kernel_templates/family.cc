#include "kernel_templates/family.h"

#include <fmt/format.h>

#include <array>

#include "gemm/error.h"
#include "kernel_templates/sm100_gemm.h"
#include "kernel_templates/sm90_gemm.h"

namespace gemmtune {

Config KernelFamily::default_config() const {
  Config config;
  for (const Knob& knob : knobs_) config.values.push_back(knob.default_value);
  return config;
}

int KernelFamily::value(const Config& config, std::string_view knob) const {
  return config.values[static_cast<size_t>(knob_index(knobs_, knob))];
}

std::span<const KernelFamily* const> families() {
  static const std::array<const KernelFamily*, 2> kFamilies = {&sm100_gemm_family(), &sm90_gemm_family()};
  return kFamilies;
}

const KernelFamily& family_for(const ArchSpec& arch) {
  for (const KernelFamily* family : families())
    if (family->supports(arch)) return *family;
  throw UsageError(fmt::format("no kernel family for {}", arch.name));
}

const KernelFamily* find_family(std::string_view name) {
  for (const KernelFamily* family : families())
    if (family->name() == name) return family;
  return nullptr;
}

}  // namespace gemmtune
