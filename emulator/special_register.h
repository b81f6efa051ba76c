// Read-only registers such as %tid.x: a table row each.
#pragma once

#include <string_view>

#include "emulator/program.h"

namespace gemmtune::emulator {

struct SpecialRegister {
  std::string_view name;
  int bytes;
  Handler read;
};

/// -1 if there is none of this name.
int find_special_register(std::string_view name);
const SpecialRegister& special_register(int index);

/// Address of a shared variable: the CTA's rank << 24 | Instr::target.
Action read_shared_address_32(Warp&, Fragment&, const Instr&, Mask);
Action read_shared_address_64(Warp&, Fragment&, const Instr&, Mask);

}  // namespace gemmtune::emulator
