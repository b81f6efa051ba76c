// Workers are this very program started again. The GPU worker is a fake one; compile workers are real.
#include <gtest/gtest.h>

#include "tests/isolation/fake_gpu.h"
#include "tool/internal_worker.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() > 1 && arguments[0] == "internal-worker") {
    if (arguments[1] == "gpu") return gemmtune::run_fake_gpu(gemmtune::worker_channel());
    return gemmtune::run_internal_worker(arguments);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
