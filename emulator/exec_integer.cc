// Integer arithmetic, logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.2, 9.7.8).
#include <algorithm>
#include <limits>
#include <type_traits>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

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
    if (b == 0) return a;
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

void operands(Decode& d, ScalarType t, size_t n) {
  d.need_count(n + 1, n + 1);
  d.dst(d.parsed(0), std::max(4, size_bytes(t)), false);
  for (size_t i = 1; i <= n; ++i) d.src_as(d.parsed(i), t);
}

// --- packed 16-bit ---
struct Pair16 {
  template <class T, class F>
  static uint32_t apply(uint32_t a, uint32_t b, F f) {
    T low = f(T(a), T(b)), high = f(T(a >> 16), T(b >> 16));
    return uint32_t(uint16_t(low)) | uint32_t(uint16_t(high)) << 16;
  }
};
template <class T, class F>
Action packed(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  for_lanes(mask, [&](int l) {
    set<uint32_t>(d, l, Pair16::apply<T>(get<uint32_t>(a, l), get<uint32_t>(b, l), F()));
  });
  return Action::next;
}

/// u16x2 and s16x2 are no ScalarType: only add, min and max have them.
template <class F>
bool decode_packed(Decode& d) {
  bool is_signed = d.take("s16x2");
  if (!is_signed && !d.take("u16x2")) return false;
  d.need_count(3, 3);
  d.out.run = is_signed ? packed<int16_t, F> : packed<uint16_t, F>;
  d.dst(d.parsed(0), 4, false);
  d.src(d.parsed(1), 4);
  d.src(d.parsed(2), 4);
  return true;
}

// --- carry chains: the carry is one predicate a lane, kept behind the registers ---

/// Offset of the carry mask is reserved once per module, see carry_offset().
template <class T, bool kIn, bool kOut, bool kSubtract>
Action carry_add(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  uint8_t* flag = dst_of(w, in.ops[3]);
  Mask carry;
  std::memcpy(&carry, flag, 4);
  Mask out = 0;
  for_lanes(mask, [&](int l) {
    unsigned __int128 x = get<T>(a, l), y = get<T>(b, l), c = kIn ? carry >> l & 1 : 0, r;
    if (kSubtract) {
      r = x - y - c;
      if (x < y + c) out |= 1u << l;
    } else {
      r = x + y + c;
      if (r >> (8 * sizeof(T))) out |= 1u << l;
    }
    set<T>(d, l, static_cast<T>(r));
  });
  if (kOut) {
    carry = (carry & ~mask) | out;
    std::memcpy(flag, &carry, 4);
  }
  return Action::next;
}

template <class T, bool kHigh, bool kIn, bool kOut>
Action carry_mad(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  uint8_t* flag = dst_of(w, in.ops[4]);
  Mask carry;
  std::memcpy(&carry, flag, 4);
  Mask out = 0;
  using U = Unsigned<T>;
  for_lanes(mask, [&](int l) {
    U product = U(kHigh ? MulHigh()(get<T>(a, l), get<T>(b, l)) : MulLow()(get<T>(a, l), get<T>(b, l)));
    unsigned __int128 r = static_cast<unsigned __int128>(product) + get<U>(c, l) + (kIn ? carry >> l & 1 : 0);
    if (r >> (8 * sizeof(T))) out |= 1u << l;
    set<U>(d, l, static_cast<U>(r));
  });
  if (kOut) {
    carry = (carry & ~mask) | out;
    std::memcpy(flag, &carry, 4);
  }
  return Action::next;
}

void append_carry(Decode& d) {
  Operand op;
  op.kind = Operand::Kind::reg;
  op.offset = d.module.carry_register();
  d.module.operand_list().push_back(op);
}

template <bool kSubtract>
void decode_carry(Decode& d, bool in) {
  bool out = d.take("cc");
  ScalarType t = d.need_type();
  operands(d, t, 2);
  append_carry(d);
  if (size_bytes(t) == 4)
    d.out.run =
        in ? (out ? carry_add<uint32_t, true, true, kSubtract> : carry_add<uint32_t, true, false, kSubtract>)
           : carry_add<uint32_t, false, true, kSubtract>;
  else if (size_bytes(t) == 8)
    d.out.run =
        in ? (out ? carry_add<uint64_t, true, true, kSubtract> : carry_add<uint64_t, true, false, kSubtract>)
           : carry_add<uint64_t, false, true, kSubtract>;
  else
    d.fail("type is not supported here");
}
void decode_addc(Decode& d) { decode_carry<false>(d, true); }
void decode_subc(Decode& d) { decode_carry<true>(d, true); }

template <class T, bool kHigh>
Handler pick_mad(bool in, bool out) {
  return in ? (out ? carry_mad<T, kHigh, true, true> : carry_mad<T, kHigh, true, false>)
            : carry_mad<T, kHigh, false, true>;
}
void decode_carry_mad(Decode& d, bool in) {
  bool out = d.take("cc");
  bool high = d.need_one_of({"lo", "hi"}) == 1;
  ScalarType t = d.need_type();
  operands(d, t, 3);
  append_carry(d);
  switch (t) {
    case ScalarType::u32:
      d.out.run = high ? pick_mad<uint32_t, true>(in, out) : pick_mad<uint32_t, false>(in, out);
      break;
    case ScalarType::s32:
      d.out.run = high ? pick_mad<int32_t, true>(in, out) : pick_mad<int32_t, false>(in, out);
      break;
    case ScalarType::u64:
      d.out.run = high ? pick_mad<uint64_t, true>(in, out) : pick_mad<uint64_t, false>(in, out);
      break;
    case ScalarType::s64:
      d.out.run = high ? pick_mad<int64_t, true>(in, out) : pick_mad<int64_t, false>(in, out);
      break;
    default:
      d.fail("type is not supported here");
  }
}
void decode_madc(Decode& d) { decode_carry_mad(d, true); }

// --- shifts ---
template <class T>
struct ShiftLeft {
  T operator()(T a, uint32_t n) const { return n >= 8 * sizeof(T) ? T{0} : T(Unsigned<T>(a) << n); }
};
template <class T>
struct ShiftRight {
  T operator()(T a, uint32_t n) const {
    if (n >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? T(-1) : T{0};
    return T(a >> n);
  }
};
template <class T, class F>
Action shift(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  for_lanes(mask, [&](int l) { set<T>(d, l, F()(get<T>(a, l), get<uint32_t>(b, l))); });
  return Action::next;
}
void shift_operands(Decode& d, ScalarType t) {
  d.need_count(3, 3);
  d.dst(d.parsed(0), std::max(4, size_bytes(t)), false);
  d.src_as(d.parsed(1), t);
  d.src(d.parsed(2), 4);
}
void decode_shl(Decode& d) {
  ScalarType t = d.need_type();
  shift_operands(d, t);
  switch (size_bytes(t)) {
    case 2:
      d.out.run = shift<uint16_t, ShiftLeft<uint16_t>>;
      break;
    case 4:
      d.out.run = shift<uint32_t, ShiftLeft<uint32_t>>;
      break;
    case 8:
      d.out.run = shift<uint64_t, ShiftLeft<uint64_t>>;
      break;
    default:
      d.fail("type is not supported here");
  }
}
void decode_shr(Decode& d) {
  ScalarType t = d.need_type();
  shift_operands(d, t);
  if (is_signed(t)) {
    switch (size_bytes(t)) {
      case 2:
        d.out.run = shift<int16_t, ShiftRight<int16_t>>;
        return;
      case 4:
        d.out.run = shift<int32_t, ShiftRight<int32_t>>;
        return;
      case 8:
        d.out.run = shift<int64_t, ShiftRight<int64_t>>;
        return;
      default:
        break;
    }
  }
  switch (size_bytes(t)) {
    case 2:
      d.out.run = shift<uint16_t, ShiftRight<uint16_t>>;
      break;
    case 4:
      d.out.run = shift<uint32_t, ShiftRight<uint32_t>>;
      break;
    case 8:
      d.out.run = shift<uint64_t, ShiftRight<uint64_t>>;
      break;
    default:
      d.fail("type is not supported here");
  }
}
template <bool kLeft, bool kWrap>
struct Funnel {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t n = kWrap ? c & 31 : std::min(c, 32u);
    uint64_t v = uint64_t{b} << 32 | a;
    return static_cast<uint32_t>(kLeft ? (n == 32 ? v << 32 : v << n) >> 32 : v >> n);
  }
};
void decode_shf(Decode& d) {
  bool left = d.need_one_of({"l", "r"}) == 0, wrap = d.need_one_of({"clamp", "wrap"}) == 1;
  ScalarType t = d.need_type();
  if (size_bytes(t) != 4) d.fail("type is not supported here");
  operands(d, t, 3);
  d.out.run = left
                  ? (wrap ? ternary<uint32_t, Funnel<true, true>> : ternary<uint32_t, Funnel<true, false>>)
                  : (wrap ? ternary<uint32_t, Funnel<false, true>> : ternary<uint32_t, Funnel<false, false>>);
}

// --- logic ---
template <class F>
Action logic_predicate(Warp& w, Fragment&, const Instr& in, Mask mask) {
  set_predicate(w, in.ops[0], mask, F()(w.predicate(in.ops[1]), w.predicate(in.ops[2])));
  return Action::next;
}
template <class F>
void decode_logic(Decode& d) {
  ScalarType t = d.need_type();
  if (t == ScalarType::pred) {
    d.need_count(3, 3);
    d.out.run = logic_predicate<F>;
    d.dst(d.parsed(0), 0, false);
    d.src(d.parsed(1), 0);
    d.src(d.parsed(2), 0);
    return;
  }
  operands(d, t, 2);
  d.out.run = pick_bits<F>(d, t);
}
Action not_predicate(Warp& w, Fragment&, const Instr& in, Mask mask) {
  set_predicate(w, in.ops[0], mask, ~w.predicate(in.ops[1]));
  return Action::next;
}
void decode_not(Decode& d) {
  ScalarType t = d.need_type();
  if (t == ScalarType::pred) {
    d.need_count(2, 2);
    d.out.run = not_predicate;
    d.dst(d.parsed(0), 0, false);
    d.src(d.parsed(1), 0);
    return;
  }
  operands(d, t, 1);
  switch (size_bytes(t)) {
    case 2:
      d.out.run = unary<uint16_t, Not>;
      break;
    case 4:
      d.out.run = unary<uint32_t, Not>;
      break;
    case 8:
      d.out.run = unary<uint64_t, Not>;
      break;
    default:
      d.fail("type is not supported here");
  }
}
void decode_cnot(Decode& d) {
  ScalarType t = d.need_type();
  operands(d, t, 1);
  switch (size_bytes(t)) {
    case 2:
      d.out.run = unary<uint16_t, Cnot>;
      break;
    case 4:
      d.out.run = unary<uint32_t, Cnot>;
      break;
    case 8:
      d.out.run = unary<uint64_t, Cnot>;
      break;
    default:
      d.fail("type is not supported here");
  }
}
Action lop3(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  uint32_t table = in.mod[0];
  for_lanes(mask, [&](int l) {
    uint32_t x = get<uint32_t>(a, l), y = get<uint32_t>(b, l), z = get<uint32_t>(c, l), r = 0;
    for (uint32_t i = 0; i < 8; ++i)
      if (table >> i & 1) r |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
    set<uint32_t>(d, l, r);
  });
  return Action::next;
}
void decode_lop3(Decode& d) {
  if (d.has("or") || d.has("and")) d.fail("lop3 with a predicate is not supported");
  ScalarType t = d.need_type();
  d.need_count(5, 5);
  d.out.run = lop3;
  d.out.mod[0] = static_cast<uint32_t>(d.immediate(d.parsed(4)));
  d.dst(d.parsed(0), 4, false);
  for (size_t i = 1; i < 4; ++i) d.src_as(d.parsed(i), t);
}

// --- arithmetic ---
template <class F, class Saturated>
void decode_add_sub(Decode& d) {
  ScalarType t = d.need_type();
  if (d.take("sat")) {
    if (t != ScalarType::s32) d.fail(".sat needs .s32");
    d.out.run = binary<int32_t, Saturated>;
  } else {
    d.out.run = pick_binary<F>(d, t);
  }
  operands(d, t, 2);
}

template <class T, class W, bool kAdd>
Action mul_wide(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  const uint8_t* c = kAdd ? w.read(in.ops[3]) : nullptr;
  for_lanes(mask, [&](int l) {
    W v = W(get<T>(a, l)) * W(get<T>(b, l));
    if constexpr (kAdd) v = Add()(v, get<W>(c, l));
    set<W>(d, l, v);
  });
  return Action::next;
}

void decode_mul_mad(Decode& d, bool add) {
  if (add && d.has("cc")) {
    decode_carry_mad(d, false);
    return;
  }
  int part = d.need_one_of({"lo", "hi", "wide"});
  bool saturate = d.take("sat");
  if (saturate) d.fail(".sat is not supported here");
  ScalarType t = d.need_type();
  if (part == 2) {
    size_t n = add ? 4 : 3;
    d.need_count(n, n);
    int wide = size_bytes(t) * 2;
    d.dst(d.parsed(0), wide, false);
    d.src_as(d.parsed(1), t);
    d.src_as(d.parsed(2), t);
    if (add) d.src(d.parsed(3), wide);
    switch (t) {
      case ScalarType::u16:
        d.out.run = add ? mul_wide<uint16_t, uint32_t, true> : mul_wide<uint16_t, uint32_t, false>;
        break;
      case ScalarType::s16:
        d.out.run = add ? mul_wide<int16_t, int32_t, true> : mul_wide<int16_t, int32_t, false>;
        break;
      case ScalarType::u32:
        d.out.run = add ? mul_wide<uint32_t, uint64_t, true> : mul_wide<uint32_t, uint64_t, false>;
        break;
      case ScalarType::s32:
        d.out.run = add ? mul_wide<int32_t, int64_t, true> : mul_wide<int32_t, int64_t, false>;
        break;
      default:
        d.fail("type is not supported here");
    }
    return;
  }
  operands(d, t, add ? 3 : 2);
  if (!add) {
    d.out.run = part == 0 ? pick_binary<MulLow>(d, t) : pick_binary<MulHigh>(d, t);
    return;
  }
  auto pick = [&]<class F>(F) -> Handler {
    switch (t) {
      case ScalarType::u16:
        return ternary<uint16_t, F>;
      case ScalarType::s16:
        return ternary<int16_t, F>;
      case ScalarType::u32:
        return ternary<uint32_t, F>;
      case ScalarType::s32:
        return ternary<int32_t, F>;
      case ScalarType::u64:
        return ternary<uint64_t, F>;
      case ScalarType::s64:
        return ternary<int64_t, F>;
      default:
        d.fail("type is not supported here");
    }
  };
  d.out.run = part == 0 ? pick(MadLow()) : pick(MadHigh());
}

template <class F>
void decode_div_rem(Decode& d) {
  ScalarType t = d.need_type();
  d.out.run = pick_binary<F>(d, t);
  operands(d, t, 2);
}

// mul24/mad24: low or high 32 bits of the 48-bit product.
template <bool kSigned, bool kHigh>
struct Mul24 {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    int64_t x = kSigned ? int32_t(a << 8) >> 8 : int64_t(a & 0xffffff);
    int64_t y = kSigned ? int32_t(b << 8) >> 8 : int64_t(b & 0xffffff);
    return static_cast<uint32_t>((x * y) >> (kHigh ? 16 : 0));
  }
};
template <bool kSigned, bool kHigh>
struct Mad24 {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const { return Mul24<kSigned, kHigh>()(a, b) + c; }
};
void decode_mul24(Decode& d) {
  bool high = d.need_one_of({"lo", "hi"}) == 1;
  ScalarType t = d.need_type();
  operands(d, t, 2);
  bool s = is_signed(t);
  d.out.run = s ? (high ? binary<uint32_t, Mul24<true, true>> : binary<uint32_t, Mul24<true, false>>)
                : (high ? binary<uint32_t, Mul24<false, true>> : binary<uint32_t, Mul24<false, false>>);
}
void decode_mad24(Decode& d) {
  bool high = d.need_one_of({"lo", "hi"}) == 1;
  ScalarType t = d.need_type();
  operands(d, t, 3);
  bool s = is_signed(t);
  d.out.run = s ? (high ? ternary<uint32_t, Mad24<true, true>> : ternary<uint32_t, Mad24<true, false>>)
                : (high ? ternary<uint32_t, Mad24<false, true>> : ternary<uint32_t, Mad24<false, false>>);
}

void decode_sad(Decode& d) {
  ScalarType t = d.need_type();
  operands(d, t, 3);
  switch (t) {
    case ScalarType::u16:
      d.out.run = ternary<uint16_t, Sad>;
      break;
    case ScalarType::s16:
      d.out.run = ternary<int16_t, Sad>;
      break;
    case ScalarType::u32:
      d.out.run = ternary<uint32_t, Sad>;
      break;
    case ScalarType::s32:
      d.out.run = ternary<int32_t, Sad>;
      break;
    case ScalarType::u64:
      d.out.run = ternary<uint64_t, Sad>;
      break;
    case ScalarType::s64:
      d.out.run = ternary<int64_t, Sad>;
      break;
    default:
      d.fail("type is not supported here");
  }
}

// --- bit fields ---
template <class T>
Action count_bits(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  for_lanes(mask, [&](int l) {
    T v = get<T>(a, l);
    set<uint32_t>(d, l, static_cast<uint32_t>(in.mod[0] ? std::countl_zero(v) : std::popcount(v)));
  });
  return Action::next;
}
void decode_count(Decode& d, bool clz) {
  ScalarType t = d.need_type();
  d.need_count(2, 2);
  d.out.mod[0] = clz;
  d.out.run = size_bytes(t) == 8 ? count_bits<uint64_t> : count_bits<uint32_t>;
  d.dst(d.parsed(0), 4, false);
  d.src_as(d.parsed(1), t);
}

template <class T>
Action bfind(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  for_lanes(mask, [&](int l) {
    T v = get<T>(a, l);
    Unsigned<T> u = std::is_signed_v<T> && v < 0 ? Unsigned<T>(~v) : Unsigned<T>(v);
    uint32_t r =
        u == 0 ? ~0u : static_cast<uint32_t>(8 * sizeof(T) - 1) - static_cast<uint32_t>(std::countl_zero(u));
    if (in.mod[0] && r != ~0u) r = static_cast<uint32_t>(8 * sizeof(T) - 1) - r;
    set<uint32_t>(d, l, r);
  });
  return Action::next;
}
void decode_bfind(Decode& d) {
  d.out.mod[0] = d.take("shiftamt");
  ScalarType t = d.need_type();
  d.need_count(2, 2);
  switch (t) {
    case ScalarType::u32:
      d.out.run = bfind<uint32_t>;
      break;
    case ScalarType::s32:
      d.out.run = bfind<int32_t>;
      break;
    case ScalarType::u64:
      d.out.run = bfind<uint64_t>;
      break;
    case ScalarType::s64:
      d.out.run = bfind<int64_t>;
      break;
    default:
      d.fail("type is not supported here");
  }
  d.dst(d.parsed(0), 4, false);
  d.src_as(d.parsed(1), t);
}

struct Reverse {
  template <class T>
  T operator()(T v) const {
    T r = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i, v = T(v >> 1)) r = T(r << 1 | (v & 1));
    return r;
  }
};
void decode_brev(Decode& d) {
  ScalarType t = d.need_type();
  operands(d, t, 1);
  d.out.run = size_bytes(t) == 8 ? unary<uint64_t, Reverse> : unary<uint32_t, Reverse>;
}

template <class T>
Action bfe(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  constexpr uint32_t bits = 8 * sizeof(T);
  for_lanes(mask, [&](int l) {
    T v = get<T>(a, l);
    uint32_t pos = get<uint32_t>(b, l) & 0xff, len = get<uint32_t>(c, l) & 0xff;
    bool sign = std::is_signed_v<T> && len > 0 && (Unsigned<T>(v) >> std::min(pos + len - 1, bits - 1) & 1);
    Unsigned<T> r = pos < bits ? Unsigned<T>(v) >> pos : 0;
    if (len < bits) r &= (Unsigned<T>{1} << len) - 1;
    // Bits beyond the source, too, are the sign.
    uint32_t valid = std::min(len, pos < bits ? bits - pos : 0);
    if (sign && valid < bits) r |= ~Unsigned<T>{0} << valid;
    if (len == 0) r = 0;
    set<T>(d, l, T(r));
  });
  return Action::next;
}
void decode_bfe(Decode& d) {
  ScalarType t = d.need_type();
  d.need_count(4, 4);
  switch (t) {
    case ScalarType::u32:
      d.out.run = bfe<uint32_t>;
      break;
    case ScalarType::s32:
      d.out.run = bfe<int32_t>;
      break;
    case ScalarType::u64:
      d.out.run = bfe<uint64_t>;
      break;
    case ScalarType::s64:
      d.out.run = bfe<int64_t>;
      break;
    default:
      d.fail("type is not supported here");
  }
  d.dst(d.parsed(0), size_bytes(t), false);
  d.src_as(d.parsed(1), t);
  d.src(d.parsed(2), 4);
  d.src(d.parsed(3), 4);
}
template <class T>
Action bfi(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]),
                *e = w.read(in.ops[4]);
  constexpr uint32_t bits = 8 * sizeof(T);
  for_lanes(mask, [&](int l) {
    uint32_t pos = get<uint32_t>(c, l) & 0xff, len = get<uint32_t>(e, l) & 0xff;
    T field = len >= bits ? ~T{0} : T((T{1} << len) - 1);
    T put = pos < bits ? T(field << pos) : 0, value = pos < bits ? T(get<T>(a, l) << pos) : 0;
    set<T>(d, l, T((get<T>(b, l) & ~put) | (value & put)));
  });
  return Action::next;
}
void decode_bfi(Decode& d) {
  ScalarType t = d.need_type();
  d.need_count(5, 5);
  d.out.run = size_bytes(t) == 8 ? bfi<uint64_t> : bfi<uint32_t>;
  d.dst(d.parsed(0), size_bytes(t), false);
  d.src_as(d.parsed(1), t);
  d.src_as(d.parsed(2), t);
  d.src(d.parsed(3), 4);
  d.src(d.parsed(4), 4);
}
template <bool kWrap>
struct BitMask {
  uint32_t operator()(uint32_t pos, uint32_t len) const {
    if (kWrap)
      pos &= 31, len &= 31;
    else
      pos = std::min(pos, 32u), len = std::min(len, 32u);
    uint64_t field = (1ull << len) - 1;
    return static_cast<uint32_t>(field << pos);
  }
};
void decode_bmsk(Decode& d) {
  bool wrap = d.need_one_of({"clamp", "wrap"}) == 1;
  operands(d, d.need_type(), 2);
  d.out.run = wrap ? binary<uint32_t, BitMask<true>> : binary<uint32_t, BitMask<false>>;
}
template <bool kSigned, bool kWrap>
struct SignZeroExtend {
  uint32_t operator()(uint32_t a, uint32_t n) const {
    n = kWrap ? n & 31 : std::min(n, 32u);
    if (n == 0) return 0;
    uint32_t shift = 32 - n;
    return kSigned ? uint32_t(int32_t(a << shift) >> shift) : a << shift >> shift;
  }
};
void decode_szext(Decode& d) {
  bool wrap = d.need_one_of({"clamp", "wrap"}) == 1;
  ScalarType t = d.need_type();
  operands(d, t, 2);
  d.out.run = is_signed(t) ? (wrap ? binary<uint32_t, SignZeroExtend<true, true>>
                                   : binary<uint32_t, SignZeroExtend<true, false>>)
                           : (wrap ? binary<uint32_t, SignZeroExtend<false, true>>
                                   : binary<uint32_t, SignZeroExtend<false, false>>);
}

// --- dot products of packed bytes ---
/// mod[0], mod[1]: a, b signed; mod[2]: 4 bytes, or 2 halves (dp2a) with mod[3] the upper bytes of b.
Action dot(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask, [&](int l) {
    uint32_t x = get<uint32_t>(a, l), y = get<uint32_t>(b, l), sum = get<uint32_t>(c, l);
    if (in.mod[2] == 2 && in.mod[3]) y >>= 16;
    for (uint32_t i = 0; i < in.mod[2]; ++i) {
      int32_t u;
      if (in.mod[2] == 4)
        u = in.mod[0] ? int8_t(x >> 8 * i) : uint8_t(x >> 8 * i);
      else
        u = in.mod[0] ? int16_t(x >> 16 * i) : uint16_t(x >> 16 * i);
      int32_t v = in.mod[1] ? int8_t(y >> 8 * i) : uint8_t(y >> 8 * i);
      sum += static_cast<uint32_t>(u * v);
    }
    set<uint32_t>(d, l, sum);
  });
  return Action::next;
}
void decode_dot(Decode& d, uint32_t n) {
  if (n == 2) d.out.mod[3] = static_cast<uint32_t>(d.need_one_of({"lo", "hi"}));
  ScalarType a = d.need_type();
  ScalarType b = d.take_type().value_or(a);
  d.need_count(4, 4);
  d.out.run = dot;
  d.out.mod[0] = is_signed(a);
  d.out.mod[1] = is_signed(b);
  d.out.mod[2] = n;
  d.dst(d.parsed(0), 4, false);
  for (size_t i = 1; i < 4; ++i) d.src(d.parsed(i), 4);
}

}  // namespace

// Opcodes that integers and floating types share are registered by exec_float.cc, which calls these for
// integers.
void decode_integer_add(Decode& d) {
  if (decode_packed<Add>(d)) return;
  if (d.has("cc"))
    decode_carry<false>(d, false);
  else
    decode_add_sub<Add, AddSat>(d);
}
void decode_integer_sub(Decode& d) {
  if (d.has("cc"))
    decode_carry<true>(d, false);
  else
    decode_add_sub<Sub, SubSat>(d);
}
void decode_integer_mul(Decode& d) { decode_mul_mad(d, false); }
void decode_integer_mad(Decode& d) { decode_mul_mad(d, true); }
void decode_integer_div(Decode& d) { decode_div_rem<Div>(d); }
void decode_integer_min(Decode& d) {
  bool relu = d.take("relu");
  if (relu ? decode_packed<MinRelu>(d) : decode_packed<Min>(d)) return;
  ScalarType t = d.need_type();
  operands(d, t, 2);
  d.out.run = relu ? pick_binary<MinRelu>(d, t) : pick_binary<Min>(d, t);
}
void decode_integer_max(Decode& d) {
  bool relu = d.take("relu");
  if (relu ? decode_packed<MaxRelu>(d) : decode_packed<Max>(d)) return;
  ScalarType t = d.need_type();
  operands(d, t, 2);
  d.out.run = relu ? pick_binary<MaxRelu>(d, t) : pick_binary<Max>(d, t);
}
void decode_integer_abs(Decode& d) {
  ScalarType t = d.need_type();
  operands(d, t, 1);
  d.out.run = pick_unary<Abs>(d, t);
}
void decode_integer_neg(Decode& d) {
  ScalarType t = d.need_type();
  operands(d, t, 1);
  d.out.run = pick_unary<Neg>(d, t);
}

void register_integer(OpcodeTable& t) {
  t["addc"] = decode_addc;
  t["subc"] = decode_subc;
  t["madc"] = decode_madc;
  t["rem"] = decode_div_rem<Rem>;
  t["mul24"] = decode_mul24;
  t["mad24"] = decode_mad24;
  t["sad"] = decode_sad;
  t["and"] = decode_logic<And>;
  t["or"] = decode_logic<Or>;
  t["xor"] = decode_logic<Xor>;
  t["not"] = decode_not;
  t["cnot"] = decode_cnot;
  t["lop3"] = decode_lop3;
  t["shl"] = decode_shl;
  t["shr"] = decode_shr;
  t["shf"] = decode_shf;
  t["popc"] = [](Decode& d) { decode_count(d, false); };
  t["clz"] = [](Decode& d) { decode_count(d, true); };
  t["bfind"] = decode_bfind;
  t["brev"] = decode_brev;
  t["bfe"] = decode_bfe;
  t["bfi"] = decode_bfi;
  t["bmsk"] = decode_bmsk;
  t["szext"] = decode_szext;
  t["dp4a"] = [](Decode& d) { decode_dot(d, 4); };
  t["dp2a"] = [](Decode& d) { decode_dot(d, 2); };
}

}  // namespace gemmtune::emulator
