// One measurement at a time on a GPU: a lock among all gemmtune processes of this machine.
#pragma once

#include <optional>
#include <string>

namespace gemmtune {

/// A flock()ed file per GPU UUID: `gemmtune-GPU-....lock` in /tmp, or in the folder that GEMMTUNE_LOCK_DIR
/// names (for containers that share a GPU but not /tmp). It is writable for all users, since they share the
/// GPU; the kernel lets go of the lock when its holder dies, however that happens. A second file, `.turn`, is
/// the queue's head: who waits holds it, so a process that wants the lock again at once comes behind those
/// who waited.
class GpuLock {
 public:
  /// Opens or makes both files. Throws EnvironmentError.
  explicit GpuLock(const std::string& uuid);
  GpuLock(const GpuLock&) = delete;
  ~GpuLock();

  /// Nothing: this process has the lock now. Otherwise who has it, "pid 4711", or is before us in the queue;
  /// ask again (our place is kept).
  std::optional<std::string> try_acquire();
  void release();
  bool held() const { return held_; }
  /// A child that inherits it keeps the lock taken until it is gone, too: a worker outlives a killed
  /// coordinator by a moment.
  int fd() const { return lock_.fd; }

 private:
  struct File {
    std::string path;
    int fd = -1;
  };
  static bool lock(File& file);

  File lock_, turn_;
  bool held_ = false, first_in_line_ = false;
};

/// Where lock files are.
std::string lock_folder();

}  // namespace gemmtune
