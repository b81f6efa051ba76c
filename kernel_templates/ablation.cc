#include "kernel_templates/ablation.h"

#include <fmt/format.h>

#include <array>

#include "gemm/error.h"

namespace gemmtune {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"none", "mma", "loads", "epilogue"};

}  // namespace

std::string_view name(Ablation ablation) { return kNames[static_cast<size_t>(ablation)]; }

Ablation parse_ablation(std::string_view text) {
  for (Ablation ablation : {Ablation::mma, Ablation::loads, Ablation::epilogue})
    if (text == name(ablation)) return ablation;
  throw UsageError(fmt::format("--ablate: '{}' is no part of a kernel: one of mma, loads, epilogue", text));
}

}  // namespace gemmtune
