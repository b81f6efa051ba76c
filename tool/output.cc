#include "tool/output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "gemm/error.h"

namespace gemmtune {
namespace {

int g_output_errno = 0;  // of the first failure, which later calls on the stream would hide

bool flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  if (g_output_errno == 0) g_output_errno = errno;
  return false;
}

}  // namespace

void prepare_streams() {
  for (int fd : {0, 1, 2})
    // Read-only for standard output: writing to a stream that the user closed has to fail.
    if (::fcntl(fd, F_GETFD) == -1) [[maybe_unused]]
      int opened = ::open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR);
  ::signal(SIGPIPE, SIG_IGN);
}

void tell_text(std::string_view text) {
  flush_output();  // finish_output() reports a failure
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void finish_output() {
  if (flush_output()) return;
  throw EnvironmentError(fmt::format("cannot write to standard output{}{}", g_output_errno ? ": " : "",
                                     g_output_errno ? std::strerror(g_output_errno) : ""));
}

void write_whole_file(const std::string& path, std::string_view bytes) {
  auto failed = [&] {
    return EnvironmentError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  };
  std::error_code ignored;
  auto status = std::filesystem::symlink_status(path, ignored);
  // Devices, pipes and links keep what they are.
  bool direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  std::string target = direct ? path : fmt::format("{}.{}.part", path, ::getpid());
  FILE* file = std::fopen(target.c_str(), "wb");
  if (file == nullptr) throw failed();
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  written = std::fflush(file) == 0 && written;
  int reason = errno;
  std::fclose(file);
  if (written && !direct) {
    written = std::rename(target.c_str(), path.c_str()) == 0;
    reason = errno;
  }
  if (written) return;
  if (!direct) std::remove(target.c_str());
  errno = reason;
  throw failed();
}

}  // namespace gemmtune
