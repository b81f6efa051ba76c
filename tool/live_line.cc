#include "tool/live_line.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "tool/output.h"

namespace gemmtune {

LiveLine::LiveLine() {
  const char* term = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) && !(term != nullptr && std::string_view(term) == "dumb");
}

void LiveLine::show(const std::string& text) {
  if (!terminal_) return;
  auto now = std::chrono::steady_clock::now();
  if (now - drawn_at_ < std::chrono::milliseconds(80)) return;
  drawn_at_ = now;
  drawn_ = true;
  tell("\r\033[2K{}", text);
}

void LiveLine::clear() {
  if (drawn_) tell("\r\033[2K");
  drawn_ = false;
}

void LiveLine::say(const std::string& text) {
  clear();
  tell("{}\n", text);
}

}  // namespace gemmtune
