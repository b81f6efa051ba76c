// The GPU alone, for a command that measures outside a sweep.
#pragma once

#include "search/executor.h"

namespace gemmtune {

/// Waits until the executor's device is free of other gemmtune processes, saying so once on stderr; lets it
/// go at the end of its life.
class DeviceReservation {
 public:
  explicit DeviceReservation(Executor& executor);
  DeviceReservation(const DeviceReservation&) = delete;
  ~DeviceReservation() { executor_.release(); }

 private:
  Executor& executor_;
};

}  // namespace gemmtune
