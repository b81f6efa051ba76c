// Are stored winners still right, and still as fast? Winners only: one validation and a few samples each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/queries.h"
#include "search/compiler.h"
#include "search/executor.h"

namespace gemmtune {

/// What became of a stored winner. Only `holds` is good.
enum class Verdict {
  holds,
  slower,    ///< beyond the noise of both measurements
  faster,    ///< so is this: what was chosen by the old times may be beaten now
  wrong,     ///< no longer validates; `outcome` says how
  no_kernel  ///< the compiler here does not make it
};
std::string_view name(Verdict verdict);

struct VerifiedWinner {
  BestAnswer stored;
  Verdict verdict = Verdict::holds;
  Outcome outcome = Outcome::ok;
  std::string message;          ///< of everything but `holds`
  bool compiled_again = false;  ///< another compiler or template, or its cubin was pruned
  std::string driver_then, driver_now;
  std::optional<double> now_us;           ///< nothing where no time was taken
  double noise = 0;                       ///< relative: a smaller change is none
  std::optional<double> change() const {  ///< now / then
    return now_us ? std::optional(*now_us / stored.winner->median_us) : std::nullopt;
  }
};

struct VerifyOptions {
  std::vector<Problem> problems;  ///< empty: all
  std::optional<ProblemClass> cls;
  Regime regime = Regime::burst;
  uint64_t seed = 1;
  /// Before each step how many are done, of how many, and the problem.
  std::function<void(size_t, size_t, const Shape&)> progress = [](size_t, size_t, const Shape&) {};
};

/// The winners that this executor's device can judge: those of this very GPU, whatever its driver was then;
/// for the emulator those of any GPU of its architecture. Of one problem the newest.
std::vector<BestAnswer> winners_to_verify(Store& store, const Executor& executor,
                                          const VerifyOptions& options);

/// Compiles (or takes from the cache), validates and, where times are taken, times each in rounds, in a new
/// order each round. What it finds is stored: a kernel that is no longer right loses its trial's `ok`, and
/// the winner is chosen anew; a winner with another time is marked as stale; where driver or kernel have
/// changed, the fresh validation and samples become a trial of their own, under the device as it is now.
std::vector<VerifiedWinner> verify_winners(Store& store, Compiler& compiler, Executor& executor,
                                           std::vector<BestAnswer> winners, const VerifyOptions& options,
                                           int64_t sweep_id);

}  // namespace gemmtune
