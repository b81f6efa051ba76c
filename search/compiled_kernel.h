// A compilation as the record that is kept of it.
#pragma once

#include "search/compiler.h"

namespace gemmtune {

/// `result` is what the compiler made of render(variant). Its evidence gets what only the launch plan knows.
CompiledKernel compiled_kernel(const Variant& variant, const Toolchain& toolchain, CompileResult result);

}  // namespace gemmtune
