// What a person sees while a sweep runs: one live line on a terminal, one plain line a shape elsewhere. On
// stderr.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>

#include "search/sweep.h"
#include "tool/live_line.h"

namespace gemmtune {

class Progress final : public SweepObserver {
 public:
  /// How far a good trial gets: lines about shapes speak of that.
  enum class Ends { compiled, validated, timed };
  explicit Progress(Ends ends) : ends_(ends) {}

  void planned(size_t trials, size_t kernels, size_t cached) override;
  void compiling(size_t done, size_t total) override;
  void problem_started(size_t index, size_t count, const ListedShape& shape, size_t candidates) override;
  void device_busy(const std::string& holder) override;
  void trial_finished(const Trial& trial) override;
  void measuring(size_t samples_done, bool final_rounds) override;
  void disturbed(SampleMark mark) override;
  void problem_finished(const ListedShape& shape, std::optional<double> winner_us, size_t ok,
                        size_t candidates) override;

 private:
  std::string left() const;

  Ends ends_;
  LiveLine line_;
  std::map<Outcome, int> outcomes_;  ///< of this shape, without those found
  std::set<SampleMark> told_;        ///< once a sweep is enough
  size_t index_ = 0, count_ = 0, candidates_ = 0, trials_ = 0;
  size_t compiled_ = 0, to_compile_ = 0;
  std::string shape_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

/// "4096x4096x4096" or "4096x4096x4096 (qkv, 256 tokens)".
std::string shape_text(const ListedShape& shape);

}  // namespace gemmtune
