#include "gpu/gpu_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gemm/error.h"

namespace gemmtune {
namespace {

/// Opens first and creates second: in a sticky folder Linux refuses O_CREAT on a file that another user has
/// made (fs.protected_regular).
int open_shared(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  for (int attempt = 0; attempt < 3; ++attempt) {
    int fd = ::open(path.c_str(), kFlags);
    if (fd < 0 && errno == ENOENT) {
      fd = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
      if (fd >= 0) ::fchmod(fd, 0666);  // whatever the umask says
    }
    if (fd >= 0) return fd;
    if (errno != EEXIST && errno != ENOENT) break;
  }
  throw EnvironmentError(
      fmt::format("cannot open the GPU's lock {}: {}; GEMMTUNE_LOCK_DIR names another folder", path,
                  std::strerror(errno)));
}

bool same_file(const std::string& path, int fd) {
  struct stat there {
  }, here{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(fd, &here) == 0 && there.st_ino == here.st_ino &&
         there.st_dev == here.st_dev;
}

std::string holder_text(int fd) {
  char text[64] = {};
  ssize_t size = ::pread(fd, text, sizeof text - 1, 0);
  std::string holder(text, size > 0 ? static_cast<size_t>(size) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return holder.empty() ? "another process" : holder;
}

void write_holder(int fd) {
  std::string text = fmt::format("pid {}\n", ::getpid());
  // It is for a message; the lock itself is the kernel's.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

std::string lock_folder() {
  const char* folder = std::getenv("GEMMTUNE_LOCK_DIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

GpuLock::GpuLock(const std::string& uuid) {
  std::string stem = fmt::format("{}/gemmtune-{}", lock_folder(), uuid);
  lock_ = {stem + ".lock", open_shared(stem + ".lock")};
  turn_ = {stem + ".turn", open_shared(stem + ".turn")};
}

GpuLock::~GpuLock() {
  release();
  ::close(lock_.fd);
  ::close(turn_.fd);
}

bool GpuLock::lock(File& file) {
  // A cleaner of /tmp may have removed the file since: the lock is on the one that others find.
  if (!same_file(file.path, file.fd)) {
    int fresh = open_shared(file.path);
    ::close(file.fd);
    file.fd = fresh;
  }
  int result;
  do result = ::flock(file.fd, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  throw EnvironmentError(fmt::format("cannot lock {}: {}", file.path, std::strerror(errno)));
}

std::optional<std::string> GpuLock::try_acquire() {
  if (held_) return std::nullopt;
  if (!first_in_line_ && !lock(turn_)) return holder_text(turn_.fd);
  if (!first_in_line_) write_holder(turn_.fd);
  first_in_line_ = true;
  if (!lock(lock_)) return holder_text(lock_.fd);
  write_holder(lock_.fd);
  held_ = true;
  first_in_line_ = false;
  ::flock(turn_.fd, LOCK_UN);
  return std::nullopt;
}

void GpuLock::release() {
  if (held_) ::flock(lock_.fd, LOCK_UN);
  if (first_in_line_) ::flock(turn_.fd, LOCK_UN);
  held_ = first_in_line_ = false;
}

}  // namespace gemmtune
