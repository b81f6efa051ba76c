// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5), and the opcodes shared with integers.
#include <cfenv>
#include <cmath>
#include <limits>

#include "emulator/exec.h"
#include "emulator/numeric.h"
#include "gemm/dtype.h"

namespace gemmtune::emulator {

void decode_integer_add(Decode&);
void decode_integer_sub(Decode&);
void decode_integer_mul(Decode&);
void decode_integer_mad(Decode&);
void decode_integer_div(Decode&);
void decode_integer_min(Decode&);
void decode_integer_max(Decode&);
void decode_integer_abs(Decode&);
void decode_integer_neg(Decode&);

namespace {

// Instr::mod of this file: [0] flags, [1] rounding, [2] which function (for the approximations).
constexpr uint32_t kFtz = 1, kSat = 2, kNan = 4, kRelu = 8, kXorsign = 16;

float flush(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

template <class T>
T canonical(T v) {
  return v;
}
template <>
float canonical(float v) {
  return std::isnan(v) ? std::bit_cast<float>(0x7fffffffu) : v;
}

template <class T>
T saturate(T v) {
  return std::isnan(v) ? T{0} : v < 0 ? T{0} : v > 1 ? T{1} : v;
}

/// Directed rounding is rare: the host's mode is switched for one operation.
template <class T, class F>
__attribute__((noinline)) T rounded(uint32_t mode, F f) {
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  int before = std::fegetround();
  std::fesetround(kModes[mode]);
  volatile T result = f();
  std::fesetround(before);
  return result;
}

struct Add {
  template <class T>
  static T apply(T a, T b) {
    volatile T x = a;
    return x + b;
  }
};
struct Sub {
  template <class T>
  static T apply(T a, T b) {
    volatile T x = a;
    return x - b;
  }
};
struct Mul {
  template <class T>
  static T apply(T a, T b) {
    volatile T x = a;
    return x * b;
  }
};
struct Div {
  template <class T>
  static T apply(T a, T b) {
    volatile T x = a;
    return x / b;
  }
};
struct FastAdd {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct FastSub {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct FastMul {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
};

template <class T, class F>
Action plain_binary(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  for_lanes(mask, [&](int l) { set<T>(d, l, canonical(F::apply(get<T>(a, l), get<T>(b, l)))); });
  return Action::next;
}

template <class T, class F>
Action binary(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  for_lanes(mask, [&](int l) {
    T x = get<T>(a, l), y = get<T>(b, l);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) x = flush(x), y = flush(y);
    T v = in.mod[1] ? rounded<T>(in.mod[1], [&] { return F::template apply<T>(x, y); })
                    : F::template apply<T>(x, y);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) v = flush(v);
    if (in.mod[0] & kSat) v = saturate(v);
    set<T>(d, l, canonical(v));
  });
  return Action::next;
}

template <class T>
Action plain_fma(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask,
            [&](int l) { set<T>(d, l, canonical(std::fma(get<T>(a, l), get<T>(b, l), get<T>(c, l)))); });
  return Action::next;
}

template <class T>
Action fma(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask, [&](int l) {
    T x = get<T>(a, l), y = get<T>(b, l), z = get<T>(c, l);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) x = flush(x), y = flush(y), z = flush(z);
    T v = in.mod[1] ? rounded<T>(in.mod[1],
                                 [&] {
                                   volatile T k = x;
                                   return std::fma(k, y, z);
                                 })
                    : std::fma(x, y, z);
    if constexpr (sizeof(T) == 4)
      if (in.mod[0] & kFtz) v = flush(v);
    if (in.mod[0] & kSat) v = saturate(v);
    set<T>(d, l, canonical(v));
  });
  return Action::next;
}

// --- f32x2: two independent halves of a 64-bit register ---
template <int kOp>  // 0 add, 1 sub, 2 mul, 3 fma
Action pair_f32(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = kOp == 3 ? w.read(in.ops[3]) : a;
  for_lanes(mask, [&](int l) {
    float x[2], y[2], z[2], r[2];
    std::memcpy(x, a + 8 * l, 8);
    std::memcpy(y, b + 8 * l, 8);
    std::memcpy(z, c + 8 * l, 8);
    for (int i = 0; i < 2; ++i) {
      if (in.mod[0] & kFtz) x[i] = flush(x[i]), y[i] = flush(y[i]), z[i] = flush(z[i]);
      auto compute = [&]() -> float {
        volatile float u = x[i];
        return kOp == 0   ? u + y[i]
               : kOp == 1 ? u - y[i]
               : kOp == 2 ? u * y[i]
                          : std::fma(float(u), y[i], z[i]);
      };
      r[i] = in.mod[1] ? rounded<float>(in.mod[1], compute) : compute();
      if (in.mod[0] & kFtz) r[i] = flush(r[i]);
      r[i] = canonical(r[i]);
    }
    std::memcpy(d + 8 * l, r, 8);
  });
  return Action::next;
}

// --- 16-bit types: computed exactly in double, rounded once ---

uint16_t half_op(int op, double a, double b, double c, ScalarType type, uint32_t flags) {
  double v;
  switch (op) {
    case 0:
      v = add_round_to_odd(a, b);
      break;
    case 1:
      v = add_round_to_odd(a, -b);
      break;
    case 2:
      v = a * b;
      break;  // at most 22 bits: exact
    default:
      v = add_round_to_odd(a * b, c);
      break;
  }
  if ((flags & kRelu) && (v < 0 || (v == 0 && std::signbit(v)))) v = 0;
  if (flags & kSat) v = saturate(v);
  uint32_t bits = encode_float(v, type);
  if ((flags & kFtz) && type == ScalarType::f16 && !(bits & 0x7c00)) bits &= 0x8000;
  return static_cast<uint16_t>(bits);
}

uint16_t half_compare(bool max, uint16_t a, uint16_t b, ScalarType type, uint32_t flags) {
  double x = decode_float(a, type), y = decode_float(b, type);
  if ((flags & kNan) && (std::isnan(x) || std::isnan(y))) return 0x7fff;
  if (std::isnan(x) && std::isnan(y)) return 0x7fff;
  if (std::isnan(x)) return b;
  if (std::isnan(y)) return a;
  if (x == y) {
    bool first = max ? !std::signbit(x) : std::signbit(x);  // -0 < +0
    return first ? a : b;
  }
  return (x < y) == !max ? a : b;
}

/// mod[3]: operation (0..3 as above, 4 min, 5 max, 6 neg, 7 abs); mod[4]: halves; mod[5]: ScalarType.
Action half(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* sources[3] = {};
  for (int i = 1; i < in.op_count; ++i) sources[i - 1] = w.read(in.ops[i]);
  ScalarType type = static_cast<ScalarType>(in.mod[2]);
  for_lanes(mask, [&](int l) {
    uint32_t out = 0;
    for (uint32_t h = 0; h < in.mod[4]; ++h) {
      uint16_t x[3] = {};
      for (int i = 0; i < in.op_count - 1; ++i) {
        x[i] = static_cast<uint16_t>(get<uint32_t>(sources[i], l) >> (16 * h));
        if ((in.mod[0] & kFtz) && !(x[i] & 0x7c00)) x[i] &= 0x8000;  // .ftz exists for f16 only
      }
      uint16_t r;
      switch (in.mod[3]) {
        case 4:
        case 5:
          r = half_compare(in.mod[3] == 5, x[0], x[1], type, in.mod[0]);
          break;
        case 6:
          r = x[0] ^ 0x8000;
          break;
        case 7:
          r = x[0] & 0x7fff;
          break;
        default:
          r = half_op(static_cast<int>(in.mod[3]), decode_float(x[0], type), decode_float(x[1], type),
                      decode_float(x[2], type), type, in.mod[0]);
      }
      out |= uint32_t{r} << (16 * h);
    }
    set<uint32_t>(d, l, out);
  });
  return Action::next;
}

void operands(Decode& d, ScalarType t, size_t n) {
  d.need_count(n + 1, n + 1);
  d.dst(d.parsed(0), std::max(4, size_bytes(t)), false);
  for (size_t i = 1; i <= n; ++i) d.src_as(d.parsed(i), t);
}

enum class Kind { integer, f32, f64, half, pair };
Kind kind_of(Decode& d) {
  if (d.has("f16") || d.has("f16x2") || d.has("bf16") || d.has("bf16x2")) return Kind::half;
  if (d.has("f32x2")) return Kind::pair;
  if (d.has("f32")) return Kind::f32;
  if (d.has("f64")) return Kind::f64;
  return Kind::integer;
}

void flags_of(Decode& d) {
  if (d.take("ftz")) d.out.mod[0] |= kFtz;
  if (d.take("sat")) d.out.mod[0] |= kSat;
  int rounding = d.take_one_of({"rn", "rz", "rm", "rp"});
  d.out.mod[1] = rounding < 0 ? 0 : static_cast<uint32_t>(rounding);
}

void decode_half(Decode& d, int op, size_t n) {
  flags_of(d);
  if (d.take("relu")) d.out.mod[0] |= kRelu;
  if (d.take("NaN")) d.out.mod[0] |= kNan;
  if (d.out.mod[1]) d.fail("rounding mode is not supported here");
  ScalarType t = d.need_type();
  operands(d, t, n);
  bool packed = t == ScalarType::f16x2 || t == ScalarType::bf16x2;
  bool bf = t == ScalarType::bf16 || t == ScalarType::bf16x2;
  d.out.run = half;
  d.out.mod[2] = static_cast<uint32_t>(bf ? ScalarType::bf16 : ScalarType::f16);
  d.out.mod[3] = static_cast<uint32_t>(op);
  d.out.mod[4] = packed ? 2 : 1;
  if ((d.out.mod[0] & kRelu) && op > 3) d.fail(".relu is not supported here");
}

template <class Exact, class Fast, int kOp>
void decode_arithmetic(Decode& d, void (*integer)(Decode&)) {
  switch (kind_of(d)) {
    case Kind::integer:
      integer(d);
      return;
    case Kind::half:
      decode_half(d, kOp, 2);
      return;
    case Kind::pair: {
      flags_of(d);
      d.need_type();
      d.need_count(3, 3);
      d.out.run = pair_f32<kOp>;
      d.dst(d.parsed(0), 8, false);
      d.src(d.parsed(1), 8);
      d.src(d.parsed(2), 8);
      return;
    }
    case Kind::f32:
    case Kind::f64: {
      flags_of(d);
      ScalarType t = d.need_type();
      if (d.take_type()) d.fail("mixed precision is not supported");
      operands(d, t, 2);
      bool plain = !d.out.mod[0] && !d.out.mod[1];
      if (t == ScalarType::f32)
        d.out.run = plain ? plain_binary<float, Fast> : binary<float, Exact>;
      else
        d.out.run = plain ? plain_binary<double, Fast> : binary<double, Exact>;
    }
  }
}

void decode_fma(Decode& d) {
  switch (kind_of(d)) {
    case Kind::half:
      decode_half(d, 3, 3);
      return;
    case Kind::pair:
      flags_of(d);
      d.need_type();
      d.need_count(4, 4);
      d.out.run = pair_f32<3>;
      d.dst(d.parsed(0), 8, false);
      for (size_t i = 1; i < 4; ++i) d.src(d.parsed(i), 8);
      return;
    case Kind::f32:
    case Kind::f64: {
      flags_of(d);
      ScalarType t = d.need_type();
      operands(d, t, 3);
      bool plain = !d.out.mod[0] && !d.out.mod[1];
      if (t == ScalarType::f32)
        d.out.run = plain ? plain_fma<float> : fma<float>;
      else
        d.out.run = plain ? plain_fma<double> : fma<double>;
      return;
    }
    default:
      d.fail("fma needs a floating type");
  }
}

void decode_mad(Decode& d) {
  if (kind_of(d) == Kind::integer)
    decode_integer_mad(d);
  else
    decode_fma(d);
}

void decode_div(Decode& d) {
  Kind kind = kind_of(d);
  if (kind == Kind::integer) {
    decode_integer_div(d);
    return;
  }
  d.take_one_of({"approx", "full"});
  flags_of(d);
  ScalarType t = d.need_type();
  operands(d, t, 2);
  if (kind == Kind::f32)
    d.out.run = binary<float, Div>;
  else if (kind == Kind::f64)
    d.out.run = binary<double, Div>;
  else
    d.fail("type is not supported here");
}

// --- min, max ---
template <class T, bool kMax>
Action compare(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  int extra = in.op_count == 4;
  const uint8_t* c = extra ? w.read(in.ops[3]) : nullptr;
  auto pick = [&](T x, T y) -> T {
    if (std::isnan(x) || std::isnan(y)) {
      if ((in.mod[0] & kNan) || (std::isnan(x) && std::isnan(y)))
        return canonical(std::numeric_limits<T>::quiet_NaN());
      return std::isnan(x) ? y : x;
    }
    T sign = in.mod[0] & kXorsign ? std::copysign(T{1}, x) * std::copysign(T{1}, y) : T{0};
    if (in.mod[0] & kXorsign) x = std::fabs(x), y = std::fabs(y);
    T v = x == y ? (std::signbit(x) == kMax ? y : x) : (x < y) == !kMax ? x : y;
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
    return std::fabs(a);
  }
};
struct Neg {
  template <class T>
  static T apply(T a) {
    return -a;
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
        yes = c == FP_NORMAL;
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

void register_float(OpcodeTable& t) {
  t["add"] = [](Decode& d) { decode_arithmetic<Add, FastAdd, 0>(d, decode_integer_add); };
  t["sub"] = [](Decode& d) { decode_arithmetic<Sub, FastSub, 1>(d, decode_integer_sub); };
  t["mul"] = [](Decode& d) { decode_arithmetic<Mul, FastMul, 2>(d, decode_integer_mul); };
  t["fma"] = decode_fma;
  t["mad"] = decode_mad;
  t["div"] = decode_div;
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
