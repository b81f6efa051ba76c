// The one exception type of loading: PTX that the emulator does not accept.
#pragma once

#include <stdexcept>
#include <string>

namespace gemmtune::emulator {

/// The PTX text cannot be executed as written. what() is one line: "line 12: unknown qualifier '.foo' in
/// '...'".
struct PtxError : std::runtime_error {
  PtxError(int line_number, const std::string& message)
      : std::runtime_error("line " + std::to_string(line_number) + ": " + message), line(line_number) {}
  int line;
};

}  // namespace gemmtune::emulator
