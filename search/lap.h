// Where a sweep's wall time goes.
#pragma once

#include <chrono>

namespace gemmtune {

/// Adds the time of its scope to a sum of seconds.
class Lap {
 public:
  explicit Lap(double& sum_s) : sum_s_(sum_s) {}
  ~Lap() { sum_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Lap(const Lap&) = delete;

 private:
  double& sum_s_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gemmtune
