#include "gpu/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "gemm/error.h"

namespace gemmtune {
namespace {

constexpr int kWorkerFd = 3;
/// Cubin, PTX and log of one kernel take a few MiB.
constexpr uint32_t kLargestMessageBytes = 256u << 20;

using Clock = std::chrono::steady_clock;

/// For poll(): 0 when `end` has passed.
int milliseconds_until(Clock::time_point end) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

/// Reads exactly `size` bytes before `end`.
Channel::Received read_all(int fd, char* data, size_t size, std::optional<Clock::time_point> end) {
  while (size > 0) {
    if (end) {
      pollfd waiting{fd, POLLIN, 0};
      int ready = ::poll(&waiting, 1, milliseconds_until(*end));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return Channel::Received::timed_out;
    }
    ssize_t count = ::read(fd, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Channel::Received::closed;
    data += count;
    size -= static_cast<size_t>(count);
  }
  return Channel::Received::message;
}

Channel::Received read_message(int fd, nlohmann::json& message, std::optional<Clock::time_point> end) {
  uint32_t size = 0;
  Channel::Received got = read_all(fd, reinterpret_cast<char*>(&size), sizeof size, end);
  if (got != Channel::Received::message) return got;
  if (size > kLargestMessageBytes) return Channel::Received::closed;
  std::string bytes(size, '\0');
  got = read_all(fd, bytes.data(), size, end);
  if (got != Channel::Received::message) return got;
  message = nlohmann::json::from_cbor(bytes, true, false);
  return message.is_discarded() ? Channel::Received::closed : got;
}

/// Writes all of `bytes` before `end`.
Channel::Received write_all(int fd, const std::string& bytes, std::optional<Clock::time_point> end) {
  for (size_t at = 0; at < bytes.size();) {
    if (end) {
      pollfd waiting{fd, POLLOUT, 0};
      int ready = ::poll(&waiting, 1, milliseconds_until(*end));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return Channel::Received::timed_out;
    }
    ssize_t count = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | (end ? MSG_DONTWAIT : 0));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Channel::Received::closed;
    at += static_cast<size_t>(count);
  }
  return Channel::Received::message;
}

std::string framed(const nlohmann::json& message) {
  std::string bytes(sizeof(uint32_t), '\0');
  nlohmann::json::to_cbor(message, bytes);
  uint32_t size = static_cast<uint32_t>(bytes.size() - sizeof(uint32_t));
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

std::string ending(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

Channel::Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

bool Channel::send(const nlohmann::json& message) {
  return write_all(fd_, framed(message), std::nullopt) == Received::message;
}

Channel::Received Channel::send(const nlohmann::json& message, std::chrono::milliseconds deadline) {
  return write_all(fd_, framed(message), Clock::now() + deadline);
}

Channel::Received Channel::receive(nlohmann::json& message, std::chrono::milliseconds deadline) {
  return read_message(fd_, message, Clock::now() + deadline);
}

bool Channel::receive(nlohmann::json& message) {
  return read_message(fd_, message, std::nullopt) == Received::message;
}

nlohmann::json to_blob(const std::string& bytes) {
  return nlohmann::json::binary(std::vector<uint8_t>(bytes.begin(), bytes.end()));
}
std::string from_blob(const nlohmann::json& value) {
  const auto& bytes = value.get_binary();
  return std::string(bytes.begin(), bytes.end());
}

WorkerProcess::WorkerProcess(const std::string& role, const std::string& argument, int kept_fd)
    : channel_(-1) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw EnvironmentError(fmt::format("cannot make a socket for a worker: {}", std::strerror(errno)));
  int parent = ::getpid();
  int pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw EnvironmentError(fmt::format("cannot start a worker: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    // Only async-signal-safe calls between fork and exec.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    // Not CLOEXEC, and never the channel's number.
    if (kept_fd >= 0 && ::fcntl(kept_fd, F_DUPFD, kWorkerFd + 1) < 0) ::_exit(1);
    ::setpgid(0, 0);  // Ctrl-C is the coordinator's to handle
    if (ends[1] == kWorkerFd) {
      ::fcntl(kWorkerFd, F_SETFD, 0);
    } else {
      ::dup2(ends[1], kWorkerFd);
    }
    int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 0);
    ::dup2(null, 1);
    if (std::getenv("GEMMTUNE_WORKER_STDERR") == nullptr) ::dup2(null, 2);
    ::execl("/proc/self/exe", "gemmtune", "internal-worker", role.c_str(), argument.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  pid_ = pid;
  channel_ = Channel(ends[0]);
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ <= 0) return;
  // A process that cannot be killed now goes with this one at the latest (PR_SET_PDEATHSIG).
  ::kill(pid_, SIGKILL);
  reap(pid_, kKillPatience);
}

std::optional<std::string> reap(int pid, std::chrono::milliseconds patience) {
  Clock::time_point end = Clock::now() + patience;
  std::chrono::microseconds pause{100};
  while (true) {
    int status = 0;
    int got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid) return ending(status);
    if (got < 0 && errno != EINTR) return "already gone";
    if (Clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(20000));
  }
}

std::string WorkerProcess::kill() {
  if (pid_ <= 0) return "already gone";
  ::kill(pid_, SIGKILL);
  std::optional<std::string> end = reap(pid_, kKillPatience);
  if (!end)
    throw EnvironmentError(
        fmt::format("worker process {} did not go away {} s after SIGKILL: it sleeps in the kernel, in the "
                    "driver by all likelihood; the machine needs a look",
                    pid_, kKillPatience.count()));
  pid_ = -1;
  return *end;
}

int worker_channel_fd() { return kWorkerFd; }
Channel worker_channel() { return Channel(kWorkerFd); }

}  // namespace gemmtune
