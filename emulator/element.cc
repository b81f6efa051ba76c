#include "emulator/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "emulator/numeric.h"

namespace gemmtune::emulator {
namespace {

template <class T>
void store_integer(double value, uint8_t* to) {
  using Limits = std::numeric_limits<T>;
  T stored = 0;
  if (value >= static_cast<double>(Limits::max())) {
    stored = Limits::max();
  } else if (value <= static_cast<double>(Limits::min())) {
    stored = Limits::min();
  } else if (!std::isnan(value)) {
    stored = static_cast<T>(std::nearbyint(value));
  }
  std::memcpy(to, &stored, sizeof stored);
}

template <class T>
double load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

bool is_element(ScalarType type) {
  switch (type) {
    case ScalarType::f16:
    case ScalarType::bf16:
    case ScalarType::tf32:
    case ScalarType::f32:
    case ScalarType::f64:
    case ScalarType::e4m3:
    case ScalarType::e5m2:
      return true;
    default:
      return is_integer(type);
  }
}

void store_element(ScalarType type, double value, uint8_t* to) {
  switch (type) {
    case ScalarType::u8:
      return store_integer<uint8_t>(value, to);
    case ScalarType::u16:
      return store_integer<uint16_t>(value, to);
    case ScalarType::u32:
      return store_integer<uint32_t>(value, to);
    case ScalarType::u64:
      return store_integer<uint64_t>(value, to);
    case ScalarType::s8:
      return store_integer<int8_t>(value, to);
    case ScalarType::s16:
      return store_integer<int16_t>(value, to);
    case ScalarType::s32:
      return store_integer<int32_t>(value, to);
    case ScalarType::s64:
      return store_integer<int64_t>(value, to);
    case ScalarType::f64:
      std::memcpy(to, &value, sizeof value);
      return;
    default:
      break;
  }
  uint32_t bits = encode_float(value, type);
  std::memcpy(to, &bits, static_cast<size_t>(size_bytes(type)));
}

double load_element(ScalarType type, const uint8_t* from) {
  switch (type) {
    case ScalarType::u8:
      return load<uint8_t>(from);
    case ScalarType::u16:
      return load<uint16_t>(from);
    case ScalarType::u32:
      return load<uint32_t>(from);
    case ScalarType::u64:
      return load<uint64_t>(from);
    case ScalarType::s8:
      return load<int8_t>(from);
    case ScalarType::s16:
      return load<int16_t>(from);
    case ScalarType::s32:
      return load<int32_t>(from);
    case ScalarType::s64:
      return load<int64_t>(from);
    case ScalarType::f64:
      return load<double>(from);
    default:
      break;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(size_bytes(type)));
  return decode_float(bits, type);
}

}  // namespace gemmtune::emulator
