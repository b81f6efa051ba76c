#include "tool/internal_worker.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>

#include "gpu/compile_pool.h"
#include "gpu/gpu_worker.h"

namespace gemmtune {

int run_internal_worker(const std::vector<std::string>& arguments) {
  // Started by hand there may be any open file under that number, but not one of our sockets.
  struct stat status {};
  bool has_channel = ::fstat(worker_channel_fd(), &status) == 0 && S_ISSOCK(status.st_mode);
  if (arguments.size() == 3 && has_channel) {
    if (arguments[1] == "compile")
      return run_compile_worker(worker_channel(), std::atoll(arguments[2].c_str()));
    if (arguments[1] == "gpu") return run_gpu_worker(worker_channel(), std::atoi(arguments[2].c_str()));
  }
  std::fputs("gemmtune: internal-worker is started by gemmtune itself\n", stderr);
  return 2;
}

}  // namespace gemmtune
