// Minimum and maximum, functions of one operand, signs and tests of floating types (PTX ISA 9.7.3, 9.7.4).
#include "emulator/exec_float.h"

namespace gemmtune::emulator {
namespace {

using namespace floating;

// --- min, max ---
template <class T, bool kMax>
Action compare(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  int extra = in.op_count == 4;
  const uint8_t* c = extra ? w.read(in.ops[3]) : nullptr;
  auto pick = [&](T x, T y) -> T {
    bool any_nan = std::isnan(x) || std::isnan(y);
    if (any_nan && ((in.mod[0] & kNan) || (std::isnan(x) && std::isnan(y))))
      return with_nan_of(std::numeric_limits<T>::quiet_NaN(), y, x);
    T sign = std::signbit(x) == std::signbit(y) ? T{1} : T{-1};  // a NaN's counts, too (H200)
    if (in.mod[0] & kXorsign) x = std::fabs(x), y = std::fabs(y);
    T v;
    if (any_nan)
      v = std::isnan(x) ? y : x;
    else
      v = x == y ? (std::signbit(x) == kMax ? y : x) : (x < y) == !kMax ? x : y;
    return in.mod[0] & kXorsign ? std::copysign(v, sign) : v;
  };
  for_lanes(mask, [&](int l) {
    T x = get<T>(a, l), y = get<T>(b, l);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) x = flush(x), y = flush(y);
    T v = pick(x, y);
    if (c) v = pick(v, get<T>(c, l));
    set<T>(d, l, v);
  });
  return Action::next;
}

template <bool kMax>
void decode_min_max(Decode& d) {
  Kind kind = kind_of(d);
  if (kind == Kind::integer) {
    (kMax ? decode_integer_max : decode_integer_min)(d);
    return;
  }
  if (kind == Kind::half) {
    decode_half(d, kMax ? 5 : 4, 2);
    return;
  }
  flags_of(d);
  if (d.take("NaN")) d.out.mod[0] |= kNan;
  if (d.take("xorsign")) {
    d.take("abs");
    d.out.mod[0] |= kXorsign;
  }
  ScalarType t = d.need_type();
  d.need_count(3, 4);
  operands(d, t, d.count() - 1);
  if (kind == Kind::f32)
    d.out.run = compare<float, kMax>;
  else if (kind == Kind::f64)
    d.out.run = compare<double, kMax>;
  else
    d.fail("type is not supported here");
}

// --- one operand ---
template <class T, class F>
Action unary(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  for_lanes(mask, [&](int l) {
    T x = get<T>(a, l);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) x = flush(x);
    T v = in.mod[1] ? rounded<T>(in.mod[1],
                                 [&] {
                                   volatile T k = x;
                                   return F::template apply<T>(k);
                                 })
                    : F::template apply<T>(x);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) v = flush(v);
    set<T>(d, l, v);
  });
  return Action::next;
}
struct Abs {
  template <class T>
  static T apply(T a) {
    return std::isnan(a) ? quiet_nan(a) : std::fabs(a);
  }
};
struct Neg {
  template <class T>
  static T apply(T a) {
    return std::isnan(a) ? quiet_nan(a) : -a;
  }
};
struct Rcp {
  template <class T>
  static T apply(T a) {
    return canonical(T{1} / a);
  }
};
struct Sqrt {
  template <class T>
  static T apply(T a) {
    return canonical(std::sqrt(a));
  }
};
// The .approx functions: the host's, which are closer to the true value than the hardware's.
struct Rsqrt {
  template <class T>
  static T apply(T a) {
    return canonical(T(1.0 / std::sqrt(double(a))));
  }
};
struct Sin {
  template <class T>
  static T apply(T a) {
    return canonical(std::sin(a));
  }
};
struct Cos {
  template <class T>
  static T apply(T a) {
    return canonical(std::cos(a));
  }
};
struct Lg2 {
  template <class T>
  static T apply(T a) {
    return canonical(std::log2(a));
  }
};
struct Ex2 {
  template <class T>
  static T apply(T a) {
    return canonical(std::exp2(a));
  }
};
struct Tanh {
  template <class T>
  static T apply(T a) {
    return canonical(std::tanh(a));
  }
};

template <class F>
void decode_unary(Decode& d) {
  d.take("approx");
  d.take("full");
  flags_of(d);
  ScalarType t = d.need_type();
  operands(d, t, 1);
  if (t == ScalarType::f32)
    d.out.run = unary<float, F>;
  else if (t == ScalarType::f64)
    d.out.run = unary<double, F>;
  else
    d.fail("type is not supported here");
}
void decode_abs(Decode& d) {
  switch (kind_of(d)) {
    case Kind::integer:
      decode_integer_abs(d);
      return;
    case Kind::half:
      decode_half(d, 7, 1);
      return;
    default:
      decode_unary<Abs>(d);
  }
}
void decode_neg(Decode& d) {
  switch (kind_of(d)) {
    case Kind::integer:
      decode_integer_neg(d);
      return;
    case Kind::half:
      decode_half(d, 6, 1);
      return;
    default:
      decode_unary<Neg>(d);
  }
}

template <class T>
Action copysign_lanes(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  for_lanes(mask, [&](int l) { set<T>(d, l, std::copysign(get<T>(b, l), get<T>(a, l))); });
  return Action::next;
}
void decode_copysign(Decode& d) {
  ScalarType t = d.need_type();
  operands(d, t, 2);
  d.out.run = t == ScalarType::f32 ? copysign_lanes<float> : copysign_lanes<double>;
}

template <class T>
Action testp(Warp& w, Fragment&, const Instr& in, Mask mask) {
  const uint8_t* a = w.read(in.ops[1]);
  Mask r = 0;
  for_lanes(mask, [&](int l) {
    int c = std::fpclassify(get<T>(a, l));
    bool yes = false;
    switch (in.mod[0]) {
      case 0:
        yes = c != FP_INFINITE && c != FP_NAN;
        break;
      case 1:
        yes = c == FP_INFINITE;
        break;
      case 2:
        yes = c != FP_NAN;
        break;
      case 3:
        yes = c == FP_NAN;
        break;
      case 4:
        yes = c == FP_NORMAL || c == FP_ZERO;  // PTX ISA; H200
        break;
      default:
        yes = c == FP_SUBNORMAL;
    }
    if (yes) r |= 1u << l;
  });
  set_predicate(w, in.ops[0], mask, r);
  return Action::next;
}
void decode_testp(Decode& d) {
  d.out.mod[0] = static_cast<uint32_t>(
      d.need_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}));
  ScalarType t = d.need_type();
  d.need_count(2, 2);
  d.out.run = t == ScalarType::f32 ? testp<float> : testp<double>;
  d.dst(d.parsed(0), 0);
  d.src_as(d.parsed(1), t);
}

}  // namespace

void register_float_functions(OpcodeTable& t) {
  t["min"] = decode_min_max<false>;
  t["max"] = decode_min_max<true>;
  t["abs"] = decode_abs;
  t["neg"] = decode_neg;
  t["rcp"] = decode_unary<Rcp>;
  t["sqrt"] = decode_unary<Sqrt>;
  t["rsqrt"] = decode_unary<Rsqrt>;
  t["sin"] = decode_unary<Sin>;
  t["cos"] = decode_unary<Cos>;
  t["lg2"] = decode_unary<Lg2>;
  t["ex2"] = decode_unary<Ex2>;
  t["tanh"] = decode_unary<Tanh>;
  t["copysign"] = decode_copysign;
  t["testp"] = decode_testp;
}

}  // namespace gemmtune::emulator
