// SHA-256, for content keys.
#pragma once
#include <string>
#include <string_view>
namespace gemmtune {
/// Lower-case hex digest.
std::string sha256_hex(std::string_view bytes);
}  // namespace gemmtune
