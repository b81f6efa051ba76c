#include "search/compiler.h"

#include <fmt/format.h>

#include "gemm/sha256.h"

namespace gemmtune {

// Where a driver is present, NVRTC answers from the driver's compute cache and then says nothing of registers
// and spills: hence --no-cache. Our own cache holds the cubin with its evidence.
std::string_view compile_options() { return "--std=c++17 --ptxas-options=-v --no-cache"; }

std::string compile_key(const std::string& source, const std::string& target, const Toolchain& toolchain) {
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}", toolchain.compiler, toolchain.version, target,
                                compile_options(), source));
}

}  // namespace gemmtune
