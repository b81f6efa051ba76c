// What the emulator finds wrong with a kernel, as data.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gemm/launch_plan.h"

namespace gemmtune::emulator {

/// `error`: hardware would fault or hang, execution stopped. `race`: the PTX memory model gives no guarantee,
/// the result may be wrong on hardware. `warning`: legal or known to work, but fragile.
enum class Severity : uint8_t { error, race, warning };

enum class Check : uint8_t {
  deadlock,
  livelock,
  out_of_bounds,
  misaligned,
  mbarrier,
  matrix_descriptor,
  instruction_descriptor,
  tensor_map,
  tmem,
  wgmma,
  proxy_fence,
  smem_race,
  peer_exit,
  convergence,
  illegal_instruction,
  launch,
  trap,
};

std::string_view name(Severity severity);
std::string_view name(Check check);

/// One finding. The same check at the same PTX line is reported once per launch, with a count.
struct Diagnosis {
  Severity severity = Severity::error;
  Check check = Check::deadlock;
  std::string kernel;
  Dim3 cta;       ///< %ctaid
  int warp = -1;  ///< -1: no particular warp
  int line = 0;   ///< of the PTX text, 0: no particular line
  std::string instruction;
  std::string message;
  int64_t count = 1;
};

/// "error: mbarrier: kernel gemm, CTA (0,0,0), warp 1, line 214 'mbarrier...': not initialised".
std::string to_string(const Diagnosis& diagnosis);

/// Thrown by an instruction or an asynchronous operation that cannot go on; the cluster turns it into a
/// Diagnosis.
struct Fault : std::runtime_error {
  Fault(Check c, const std::string& message) : std::runtime_error(message), check(c) {}
  Check check;
};

}  // namespace gemmtune::emulator
