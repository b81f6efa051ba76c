// The two streams of every command: results on stdout, messages on stderr.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace gemmtune {

/// Standard output and error exist from here on, and a reader that goes away is an error code, not a signal.
/// Without this a closed descriptor would be the next file opened: the database or a worker's socket.
void prepare_streams();

/// One message, after the results printed so far. A message that nobody can read ends nothing: it never
/// throws.
void tell_text(std::string_view text);

template <class... T>
void tell(fmt::format_string<T...> format, T&&... arguments) {
  tell_text(fmt::format(format, std::forward<T>(arguments)...));
}

/// Flushes standard output. Throws EnvironmentError if any result did not arrive.
void finish_output();

/// Replaces the file as a whole or leaves it as it is. Throws EnvironmentError.
void write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace gemmtune
