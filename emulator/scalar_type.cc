#include "emulator/scalar_type.h"

#include <iterator>

namespace gemmtune::emulator {
namespace {

struct Row {
  std::string_view name;
  int bytes;
};
// Same order as the enum.
constexpr Row kRows[] = {
    {"", 0},       {"pred", 0},   {"b8", 1},     {"b16", 2},   {"b32", 4},   {"b64", 8},
    {"b128", 16},  {"u8", 1},     {"u16", 2},    {"u32", 4},   {"u64", 8},   {"s8", 1},
    {"s16", 2},    {"s32", 4},    {"s64", 8},    {"f16", 2},   {"f16x2", 4}, {"bf16", 2},
    {"bf16x2", 4}, {"tf32", 4},   {"f32", 4},    {"f32x2", 8}, {"f64", 8},   {"e4m3", 1},
    {"e5m2", 1},   {"e4m3x2", 2}, {"e5m2x2", 2}, {"e2m3", 1},  {"e3m2", 1},  {"e2m1", 1},
};

}  // namespace

std::optional<ScalarType> parse_scalar_type(std::string_view word) {
  for (size_t i = 1; i < std::size(kRows); ++i)
    if (kRows[i].name == word) return static_cast<ScalarType>(i);
  return std::nullopt;
}

std::string_view name(ScalarType type) { return kRows[static_cast<int>(type)].name; }
int size_bytes(ScalarType type) { return kRows[static_cast<int>(type)].bytes; }
bool is_signed(ScalarType type) { return type >= ScalarType::s8 && type <= ScalarType::s64; }
bool is_integer(ScalarType type) { return type >= ScalarType::u8 && type <= ScalarType::s64; }

}  // namespace gemmtune::emulator
