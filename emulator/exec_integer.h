// Lane loops and functions that the files of integer instructions share.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "emulator/exec.h"

namespace gemmtune::emulator::integer {

template <class T, class F>
Action unary(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  for_lanes(mask, [&](int l) { set<T>(d, l, F()(get<T>(a, l))); });
  return Action::next;
}
template <class T, class F>
Action binary(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  for_lanes(mask, [&](int l) { set<T>(d, l, F()(get<T>(a, l), get<T>(b, l))); });
  return Action::next;
}
template <class T, class F>
Action ternary(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask, [&](int l) { set<T>(d, l, F()(get<T>(a, l), get<T>(b, l), get<T>(c, l))); });
  return Action::next;
}

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
struct WiderOf;
template <>
struct WiderOf<int16_t> {
  using type = int32_t;
};
template <>
struct WiderOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct WiderOf<int32_t> {
  using type = int64_t;
};
template <>
struct WiderOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct WiderOf<int64_t> {
  using type = __int128;
};
template <>
struct WiderOf<uint64_t> {
  using type = unsigned __int128;
};
template <class T>
using Wider = typename WiderOf<T>::type;

// Signed overflow wraps in PTX, so sums are formed unsigned.
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return T(Unsigned<T>(a) + Unsigned<T>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return T(Unsigned<T>(a) - Unsigned<T>(b));
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return T(uint64_t(Unsigned<T>(a)) * uint64_t(Unsigned<T>(b)));
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    return T((Wider<T>(a) * Wider<T>(b)) >> (8 * sizeof(T)));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return T(~T{0});
    if (std::is_signed_v<T> && b == T(-1)) return T(Unsigned<T>(0) - Unsigned<T>(a));
    return T(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return T(~T{0});  // H200
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return T(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct MinRelu {
  template <class T>
  T operator()(T a, T b) const {
    return std::max<T>(std::min(a, b), 0);
  }
};
struct MaxRelu {
  template <class T>
  T operator()(T a, T b) const {
    return std::max<T>(std::max(a, b), 0);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? T(Unsigned<T>(0) - Unsigned<T>(a)) : a;
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return T(Unsigned<T>(0) - Unsigned<T>(a));
  }
};
struct AddSat {
  int32_t operator()(int32_t a, int32_t b) const {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t{a} + b, INT32_MIN, INT32_MAX));
  }
};
struct SubSat {
  int32_t operator()(int32_t a, int32_t b) const {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t{a} - b, INT32_MIN, INT32_MAX));
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return T(~a);
  }
};
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};
struct MadLow {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(MulLow()(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add()(MulHigh()(a, b), c);
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    Unsigned<T> difference = a < b ? Unsigned<T>(b) - Unsigned<T>(a) : Unsigned<T>(a) - Unsigned<T>(b);
    return T(Unsigned<T>(c) + difference);
  }
};

template <class F>
Handler pick_unary(Decode& d, ScalarType t) {
  switch (t) {
    case ScalarType::s16:
      return unary<int16_t, F>;
    case ScalarType::s32:
      return unary<int32_t, F>;
    case ScalarType::s64:
      return unary<int64_t, F>;
    default:
      d.fail("type is not supported here");
  }
}
template <class F>
Handler pick_binary(Decode& d, ScalarType t) {
  switch (t) {
    case ScalarType::u16:
      return binary<uint16_t, F>;
    case ScalarType::u32:
      return binary<uint32_t, F>;
    case ScalarType::u64:
      return binary<uint64_t, F>;
    case ScalarType::s16:
      return binary<int16_t, F>;
    case ScalarType::s32:
      return binary<int32_t, F>;
    case ScalarType::s64:
      return binary<int64_t, F>;
    default:
      d.fail("type is not supported here");
  }
}
template <class F>
Handler pick_bits(Decode& d, ScalarType t) {
  switch (size_bytes(t)) {
    case 2:
      return binary<uint16_t, F>;
    case 4:
      return binary<uint32_t, F>;
    case 8:
      return binary<uint64_t, F>;
    default:
      d.fail("type is not supported here");
  }
}

inline void operands(Decode& d, ScalarType t, size_t n) {
  d.need_count(n + 1, n + 1);
  d.dst(d.parsed(0), std::max(4, size_bytes(t)), false);
  for (size_t i = 1; i <= n; ++i) d.src_as(d.parsed(i), t);
}

}  // namespace gemmtune::emulator::integer

namespace gemmtune::emulator {

void register_logic(OpcodeTable&);
void register_bit_fields(OpcodeTable&);

}  // namespace gemmtune::emulator
