// Messages between the coordinator and its worker processes: length-prefixed CBOR over a socket.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace gemmtune {

/// One end of a socket. Closes it at the end of its scope.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  int fd() const { return fd_; }
  /// False when the other end is gone. For workers: their coordinator always reads.
  bool send(const nlohmann::json& message);
  enum class Received { message, closed, timed_out };
  /// As the other send(), but gives up at `deadline`: a worker that was stopped does not read, and a cubin is
  /// larger than a socket's buffer. Received::message: it was sent.
  Received send(const nlohmann::json& message, std::chrono::milliseconds deadline);
  /// Waits up to `deadline` for a whole message. Bytes that are no message count as closed: what a dying
  /// worker wrote is not to be believed.
  Received receive(nlohmann::json& message, std::chrono::milliseconds deadline);
  /// Blocks; false when the other end is gone. For workers, who have nothing else to do.
  bool receive(nlohmann::json& message);

 private:
  int fd_ = -1;
};

/// Bytes for a message, and back.
nlohmann::json to_blob(const std::string& bytes);
std::string from_blob(const nlohmann::json& value);

/// This program started again in a worker role, on the other end of a channel. It dies with its parent: a
/// coordinator that is killed leaves no orphan on the GPU.
class WorkerProcess {
 public:
  /// Runs `/proc/self/exe internal-worker ROLE [ARGUMENT]`, which inherits `kept_fd` if it is one. Throws
  /// EnvironmentError.
  WorkerProcess(const std::string& role, const std::string& argument, int kept_fd = -1);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  ~WorkerProcess();

  Channel& channel() { return channel_; }
  int pid() const { return pid_; }
  /// SIGKILL, then waits until the process is gone and says how it ended: "killed by signal 11 (Segmentation
  /// fault)" if it was dead already. Only then are its GPU context and memory free. Throws EnvironmentError
  /// for a process that outlives the signal by kKillPatience: it sleeps in the driver, and nothing that
  /// follows on that GPU could be believed.
  std::string kill();
  static constexpr std::chrono::seconds kKillPatience{60};

 private:
  int pid_ = -1;
  Channel channel_;
};

/// Waits for a child to end, up to `patience`, and says how it did; nothing if it is still there.
std::optional<std::string> reap(int pid, std::chrono::milliseconds patience);

/// The worker's end, in a process started by WorkerProcess.
int worker_channel_fd();
Channel worker_channel();

}  // namespace gemmtune
