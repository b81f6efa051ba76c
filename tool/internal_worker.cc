#include "tool/internal_worker.h"

#include <fcntl.h>

#include <cstdio>
#include <cstdlib>

#include "gpu/compile_pool.h"
#include "gpu/gpu_worker.h"

namespace gemmtune {

int run_internal_worker(const std::vector<std::string>& arguments) {
  bool has_channel = ::fcntl(worker_channel_fd(), F_GETFD) != -1;
  if (arguments.size() == 3 && has_channel) {
    if (arguments[1] == "compile") return run_compile_worker(worker_channel());
    if (arguments[1] == "gpu") return run_gpu_worker(worker_channel(), std::atoi(arguments[2].c_str()));
  }
  std::fputs("gemmtune: internal-worker is started by gemmtune itself\n", stderr);
  return 2;
}

}  // namespace gemmtune
