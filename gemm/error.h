// The two kinds of error that travel as exceptions. The third kind, a variant that fails, is data: see
// search/trial.h.
#pragma once

#include <stdexcept>

namespace gemmtune {

/// The user asked for something that cannot be: one line that says what to change. Exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The environment failed (a library is missing, a device is lost, a file is damaged). Exit status 1.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace gemmtune
