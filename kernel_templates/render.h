// A variant as one self-contained CUDA file: preamble of typed constexpr knobs, then the family's template
// with its device headers inlined. Compiles alone with NVRTC or nvcc.
#pragma once

#include <string>

#include "kernel_templates/family.h"

namespace gemmtune {

/// The complete source. Knobs that are launch parameters do not occur in it, so configs that differ only
/// there give the same text, and one cubin serves them all.
std::string render(const Variant& variant);

/// The variant's config with every launch-parameter knob at its default: what a compiled kernel is keyed by.
Config compiled_part(const KernelFamily& family, const Config& config);

}  // namespace gemmtune
