// One instruction of PTX text.
#pragma once

#include "emulator/ptx_ast.h"
#include "emulator/ptx_cursor.h"

namespace gemmtune::emulator {

/// From its guard to behind its ';'. `scope` is left for the caller to set. Throws PtxError.
ParsedInstr parse_instruction(PtxCursor& cursor);

}  // namespace gemmtune::emulator
