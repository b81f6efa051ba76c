// The geometric mean of ratios.
#pragma once

#include <cmath>

namespace gemmtune {

class Geomean {
 public:
  /// `ratio` is above 0.
  void add(double ratio) {
    log_sum_ += std::log(ratio);
    ++count_;
  }
  int count() const { return count_; }
  /// Of at least one.
  double value() const { return std::exp(log_sum_ / count_); }

 private:
  double log_sum_ = 0;
  int count_ = 0;
};

}  // namespace gemmtune
