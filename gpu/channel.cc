#include "gpu/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gemm/error.h"

namespace gemmtune {
namespace {

constexpr int kWorkerFd = 3;

using Clock = std::chrono::steady_clock;

/// Reads exactly `size` bytes before `end`.
Channel::Received read_all(int fd, char* data, size_t size, std::optional<Clock::time_point> end) {
  while (size > 0) {
    if (end) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*end - Clock::now()).count();
      pollfd waiting{fd, POLLIN, 0};
      int ready = ::poll(&waiting, 1, left > 0 ? static_cast<int>(std::min<int64_t>(left, 1 << 30)) : 0);
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
  std::string bytes(size, '\0');
  got = read_all(fd, bytes.data(), size, end);
  if (got == Channel::Received::message) message = nlohmann::json::from_cbor(bytes);
  return got;
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
  std::string bytes(sizeof(uint32_t), '\0');
  nlohmann::json::to_cbor(message, bytes);
  uint32_t size = static_cast<uint32_t>(bytes.size() - sizeof(uint32_t));
  std::memcpy(bytes.data(), &size, sizeof size);
  for (size_t at = 0; at < bytes.size();) {
    ssize_t count = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
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

WorkerProcess::WorkerProcess(const std::string& role, const std::string& argument) : channel_(-1) {
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
  if (pid_ > 0) kill();
}

std::string WorkerProcess::kill() {
  if (pid_ <= 0) return "already gone";
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

int worker_channel_fd() { return kWorkerFd; }
Channel worker_channel() { return Channel(kWorkerFd); }

}  // namespace gemmtune
