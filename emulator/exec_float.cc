// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5), and the opcodes shared with integers.
#include "emulator/exec_float.h"

#include "gemm/dtype.h"

namespace gemmtune::emulator {
namespace {

using namespace floating;

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
  for_lanes(mask, [&](int l) {
    T x = get<T>(a, l), y = get<T>(b, l);
    set<T>(d, l, with_nan_of(F::apply(x, y), y, x));
  });
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
      if (in.mod[0] & kFtz) v = flush_result(v, in.mod[1], [&] { return F::template apply<double>(x, y); });
    if (in.mod[0] & kSat) v = saturate(v);
    set<T>(d, l, std::is_same_v<F, Div> ? with_nan_of(v, x, y) : with_nan_of(v, y, x));
  });
  return Action::next;
}

template <class T>
Action plain_fma(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]), *c = w.read(in.ops[3]);
  for_lanes(mask, [&](int l) {
    T x = get<T>(a, l), y = get<T>(b, l), z = get<T>(c, l);
    set<T>(d, l, with_nan_of(std::fma(x, y, z), y, z, x));
  });
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
      if (in.mod[0] & kFtz)
        v = flush_result(v, in.mod[1], [&] { return add_round_to_odd(double{x} * double{y}, z); });
    if (in.mod[0] & kSat) v = saturate(v);
    set<T>(d, l, with_nan_of(v, y, z, x));
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
      if (in.mod[0] & kFtz)
        r[i] = flush_result(r[i], in.mod[1], [&] {
          double product = double{x[i]} * double{y[i]};
          return kOp == 3 ? add_round_to_odd(product, z[i]) : kOp == 2 ? product : double{r[i]};
        });
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
  if ((flags & kFtz) && (bits & 0x7fff) <= 0x400 && is_tiny(v, type)) bits &= 0x8000;  // f16 only
  return static_cast<uint16_t>(bits);
}

}  // namespace

uint16_t floating::half_compare(bool max, uint16_t a, uint16_t b, ScalarType type, uint32_t flags) {
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

namespace {

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
        case 7: {
          bool is_nan = (x[0] & 0x7fff) > (type == ScalarType::f16 ? 0x7c00 : 0x7f80);
          r = is_nan ? 0x7fff : in.mod[3] == 6 ? x[0] ^ 0x8000 : x[0] & 0x7fff;
          break;
        }
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

}  // namespace

void floating::decode_half(Decode& d, int op, size_t n) {
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

namespace {

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

}  // namespace

void register_float(OpcodeTable& t) {
  t["add"] = [](Decode& d) { decode_arithmetic<Add, FastAdd, 0>(d, decode_integer_add); };
  t["sub"] = [](Decode& d) { decode_arithmetic<Sub, FastSub, 1>(d, decode_integer_sub); };
  t["mul"] = [](Decode& d) { decode_arithmetic<Mul, FastMul, 2>(d, decode_integer_mul); };
  t["fma"] = decode_fma;
  t["mad"] = decode_mad;
  t["div"] = decode_div;
  register_float_functions(t);
}

}  // namespace gemmtune::emulator
