// One problem's proven variants timed against each other: screening, finals, the sustained regime, and a look
// at what launching costs. Who is timed when is stopping.h's decision; every sample is stored as it is taken.
#pragma once

#include <functional>
#include <random>

#include "search/stopping.h"
#include "search/sweep_plan.h"

namespace gemmtune {

/// One candidate that passed validation and is being timed.
struct Contestant {
  int64_t trial_id;
  const Candidate* candidate;
  int handle;
  bool prepared;  ///< the executor has its kernel
  Validation evidence;
  bool launch_cost_known = false;
};

/// Those that are timed together; `samples` has a list for each, in the same order.
struct Field {
  std::vector<Contestant> contestants;
  std::vector<SampleList> samples;

  void add(Contestant contestant, SampleList list);
  void drop(size_t i);
  /// Later than every round so far, so that a number is shared only by what was taken side by side.
  int next_round() const;
};

class Contest {
 public:
  /// The sweep around it.
  struct Host {
    Executor& executor;
    Journal& journal;
    SweepObserver& observer;
    SweepSummary& summary;
    std::mt19937_64& order;              ///< in which the contestants of a round take their turns
    std::function<bool()> halted;        ///< the sweep is to end
    std::function<void()> sample_taken;  ///< compilation goes on beside
    /// Loads the contestant's kernel, if it is not.
    std::function<StepResult(Contestant&)> make_ready;
  };
  Contest(const SweepOptions& options, const PlannedProblem& planned, const Host& host)
      : o_(options), planned_(planned), host_(host) {}

  /// Bursts. Contestants that fail leave the field.
  void burst(Field& field);
  /// Each finalist of the burst beside the fastest of them, in alternating blocks.
  void sustained(const Field& burst);

 private:
  using NextRound = std::vector<size_t> (*)(std::span<const SampleList>);
  /// Rounds in random order as long as `next_round` names someone. False: interrupted, or given up.
  bool run_rounds(Field& field, Regime regime, NextRound next_round, bool final_rounds);
  enum class Taken { counts, failed, halted };
  /// One sample that counts. Marked ones are stored too, and taken again.
  Taken take(Contestant& contestant, SampleList& samples, Regime regime, bool final_rounds, int round);
  SampleResult sample(Contestant& contestant, Regime regime);
  /// Of the fastest finalists, where launching may be what takes the time. A failure here costs nothing: the
  /// next sample would meet it, too.
  void look_at_launches(Field& field);
  int64_t record_sustained(const Contestant& contestant);

  const SweepOptions& o_;
  const PlannedProblem& planned_;
  const Host& host_;
};

}  // namespace gemmtune
