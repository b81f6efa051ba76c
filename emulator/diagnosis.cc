#include "emulator/diagnosis.h"

#include <fmt/format.h>

namespace gemmtune::emulator {

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::race:
      return "race";
    case Severity::warning:
      return "warning";
  }
  return "?";
}

std::string_view name(Check check) {
  switch (check) {
    case Check::deadlock:
      return "deadlock";
    case Check::livelock:
      return "livelock";
    case Check::out_of_bounds:
      return "out of bounds";
    case Check::misaligned:
      return "misaligned";
    case Check::mbarrier:
      return "mbarrier";
    case Check::matrix_descriptor:
      return "matrix descriptor";
    case Check::instruction_descriptor:
      return "instruction descriptor";
    case Check::tensor_map:
      return "tensor map";
    case Check::tmem:
      return "tmem";
    case Check::wgmma:
      return "wgmma";
    case Check::proxy_fence:
      return "proxy fence";
    case Check::smem_race:
      return "shared-memory race";
    case Check::peer_exit:
      return "peer exit";
    case Check::convergence:
      return "convergence";
    case Check::illegal_instruction:
      return "illegal instruction";
    case Check::launch:
      return "launch";
    case Check::trap:
      return "trap";
  }
  return "?";
}

std::string to_string(const Diagnosis& d) {
  // Mangled names of template kernels run to thousands of characters.
  std::string kernel = d.kernel.size() > 64 ? d.kernel.substr(0, 61) + "..." : d.kernel;
  std::string out = fmt::format("{}: {}: kernel {}", name(d.severity), name(d.check), kernel);
  out += fmt::format(", CTA ({},{},{})", d.cta.x, d.cta.y, d.cta.z);
  if (d.warp >= 0) out += fmt::format(", warp {}", d.warp);
  if (d.line > 0) out += fmt::format(", line {}", d.line);
  if (!d.instruction.empty()) out += fmt::format(" '{}'", d.instruction);
  out += ": " + d.message;
  if (d.count > 1) out += fmt::format(" ({} times)", d.count);
  return out;
}

}  // namespace gemmtune::emulator
