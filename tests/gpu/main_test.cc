// Workers are this very program started again, so the test program must know the worker roles; the cases of
// tests/hardware run in such a process, too.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/gpu/hardware_runner.h"
#include "tool/internal_worker.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "internal-worker")
    return gemmtune::run_internal_worker(arguments);
  if (!arguments.empty() && arguments[0] == "hardware-cases") return gemmtune::run_hardware_cases(arguments);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
