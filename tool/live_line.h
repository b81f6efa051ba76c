// What goes on now, in one line that is drawn over and over, on stderr.
#pragma once

#include <chrono>
#include <string>

namespace gemmtune {

/// Nothing is drawn where stderr is no terminal: logs get only what stays.
class LiveLine {
 public:
  LiveLine();
  LiveLine(const LiveLine&) = delete;
  ~LiveLine() { clear(); }

  /// At most every 80 ms; texts between are dropped.
  void show(const std::string& text);
  void clear();
  /// One line that stays, above what goes on.
  void say(const std::string& text);

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point drawn_at_{};
};

}  // namespace gemmtune
