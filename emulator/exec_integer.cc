// Integer arithmetic and carry chains (PTX ISA 9.7.1, 9.7.2).
#include "emulator/exec_integer.h"

namespace gemmtune::emulator {
namespace {

using namespace integer;

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
  register_logic(t);
  register_bit_fields(t);
}

}  // namespace gemmtune::emulator
