// Reading the files that users hand in: whatever can be wrong with a path ends as one line that says what to
// change.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gemmtune {

/// The whole text of a file, without a UTF-8 byte-order mark. `what` names the kind of file in messages
/// ("shape list"). Missing, folder, unreadable, larger than 64 MiB, not UTF-8 text: UsageError.
std::string read_text_file(const std::filesystem::path& path, std::string_view what);

/// Text from a file made fit for a one-line message: control characters become '?', long text is cut.
std::string printable(std::string_view text, size_t longest = 60);

}  // namespace gemmtune
