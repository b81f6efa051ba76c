// Bit counts, bit fields and dot products of packed bytes (PTX ISA 9.7.1).
#include "emulator/exec_integer.h"

namespace gemmtune::emulator {
namespace {

using namespace integer;

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

/// A position or length: eight bits of it count with 32-bit fields, all of it with 64-bit ones (H200).
template <class T>
uint32_t field_number(uint32_t v) {
  return sizeof(T) == 4 ? v & 0xff : std::min(v, 64u);
}

template <class T>
Action bfe(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  constexpr uint32_t bits = 8 * sizeof(T);
  for_lanes(mask, [&](int l) {
    T v = get<T>(a, l);
    uint32_t pos = field_number<T>(get<uint32_t>(b, l)), len = field_number<T>(get<uint32_t>(c, l));
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
    uint32_t pos = field_number<T>(get<uint32_t>(c, l)), len = field_number<T>(get<uint32_t>(e, l));
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

void register_bit_fields(OpcodeTable& t) {
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
