// PTX text to ParsedModule.
#pragma once

#include <string_view>

#include "emulator/ptx_ast.h"

namespace gemmtune::emulator {

/// The result's views point into `text`. Throws PtxError.
ParsedModule parse_ptx(std::string_view text);

}  // namespace gemmtune::emulator
