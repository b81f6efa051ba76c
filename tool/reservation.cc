#include "tool/reservation.h"

#include <chrono>
#include <thread>

#include "tool/output.h"

namespace gemmtune {

DeviceReservation::DeviceReservation(Executor& executor) : executor_(executor) {
  bool told = false;
  while (std::optional<std::string> holder = executor_.reserve()) {
    if (!told) tell("the GPU is in use by another gemmtune ({}); waiting\n", *holder);
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace gemmtune
