// Shifts and bitwise logic (PTX ISA 9.7.8).
#include "emulator/exec_integer.h"

namespace gemmtune::emulator {
namespace {

using namespace integer;

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

}  // namespace

void register_logic(OpcodeTable& t) {
  t["and"] = decode_logic<And>;
  t["or"] = decode_logic<Or>;
  t["xor"] = decode_logic<Xor>;
  t["not"] = decode_not;
  t["cnot"] = decode_cnot;
  t["lop3"] = decode_lop3;
  t["shl"] = decode_shl;
  t["shr"] = decode_shr;
  t["shf"] = decode_shf;
}

}  // namespace gemmtune::emulator
