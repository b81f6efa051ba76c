// cvt (PTX ISA 9.7.9).
#include <cmath>
#include <limits>

#include "emulator/exec_float.h"
#include "gemm/dtype.h"

namespace gemmtune::emulator {
namespace {

// mod: [0] from, [1] to, [2] rounding (Rounding), [3] flags, [4] round to integral (1 + mode).
constexpr uint32_t kSat = 1, kFtz = 2, kRelu = 4, kSatfinite = 8;

bool is_float(ScalarType t) {
  return t == ScalarType::f16 || t == ScalarType::bf16 || t == ScalarType::f32 || t == ScalarType::f64 ||
         t == ScalarType::tf32 || t == ScalarType::e4m3 || t == ScalarType::e5m2;
}

double read_float(const uint8_t* base, int lane, ScalarType t) {
  switch (t) {
    case ScalarType::f64:
      return get<double>(base, lane);
    case ScalarType::f32:
    case ScalarType::tf32:
      return get<float>(base, lane);
    default:
      return decode_float(get<uint32_t>(base, lane) & 0xffff, t);
  }
}

double integral(double v, uint32_t mode) {
  switch (static_cast<Rounding>(mode)) {
    case Rounding::zero:
      return std::trunc(v);
    case Rounding::down:
      return std::floor(v);
    case Rounding::up:
      return std::ceil(v);
    default:
      return std::nearbyint(v);  // host default: to nearest even
  }
}

void write_float(uint8_t* base, int lane, ScalarType t, double v, const Instr& in) {
  if ((in.mod[3] & kRelu) && !(v > 0) && !std::isnan(v)) v = 0;
  if (in.mod[3] & kSat) v = floating::saturate(v);
  if (t == ScalarType::f64) {
    set<double>(base, lane, v);
    return;
  }
  uint32_t bits = encode_float(v, t, static_cast<Rounding>(in.mod[2]), in.mod[3] & kSatfinite);
  if (t == ScalarType::f32 && (in.mod[3] & kFtz) && (bits << 1) <= 0x01000000 &&
      is_tiny(v, t, static_cast<Rounding>(in.mod[2])))
    bits &= 0x80000000;
  set<uint32_t>(base, lane, bits);
}

/// Sign and upper payload of a NaN, in the place that they have in f64; quiet.
uint64_t widened_nan(uint64_t raw, ScalarType from) {
  int payload = from == ScalarType::f64 ? 52 : float_format(from).mantissa_bits;
  int width = 8 * size_bytes(from);
  uint64_t sign = raw >> (width - 1) & 1, field = (raw & ((uint64_t{1} << payload) - 1)) << (52 - payload);
  return sign << 63 | 0x7ff8000000000000u | field;
}

/// What a NaN becomes (H200). Conversions from and to f64 keep what fits of its sign and payload, except
/// that .ftz from f32 makes it f32's own NaN first; bf16 is moved and .rna.tf32 cut without a look; all
/// others give the type's own NaN.
uint64_t converted_nan(uint64_t raw, ScalarType from, ScalarType to, const Instr& in) {
  if (to == ScalarType::f32 && from == ScalarType::bf16) return raw << 16 & 0xffff0000;
  if (to == ScalarType::tf32 && static_cast<Rounding>(in.mod[2]) == Rounding::nearest_away)
    return raw & 0xffffe000;
  if (from == ScalarType::f32 && (in.mod[3] & kFtz)) raw = 0x7fffffff;
  if (to == ScalarType::f64) return widened_nan(raw, from);
  const FloatFormat& f = float_format(to);
  if (from != ScalarType::f64) return encode_float(std::numeric_limits<double>::quiet_NaN(), to);
  uint64_t wide = widened_nan(raw, from);
  uint64_t magnitude = wide << 1 >> 1 >> (52 - f.mantissa_bits);
  magnitude &= (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  return wide >> 63 << (f.exponent_bits + f.mantissa_bits) | magnitude;
}

Action float_to_float(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  ScalarType from = static_cast<ScalarType>(in.mod[0]), to = static_cast<ScalarType>(in.mod[1]);
  for_lanes(mask, [&](int l) {
    double v = read_float(a, l, from);
    if (std::isnan(v) && !(in.mod[3] & kSat)) {
      uint64_t raw = from == ScalarType::f64 ? get<uint64_t>(a, l) : get<uint32_t>(a, l);
      uint64_t bits = converted_nan(raw, from, to, in);
      if (to == ScalarType::f64)
        set<uint64_t>(d, l, bits);
      else
        set<uint32_t>(d, l, static_cast<uint32_t>(bits));
      return;
    }
    if ((in.mod[3] & kFtz) && from == ScalarType::f32 &&
        std::fpclassify(static_cast<float>(v)) == FP_SUBNORMAL)
      v = std::copysign(0.0, v);
    if (in.mod[4]) v = integral(v, in.mod[4] - 1);
    write_float(d, l, to, v, in);
  });
  return Action::next;
}

template <class T>
T clamp_to(double v) {
  if (std::isnan(v)) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (v <= low) return std::numeric_limits<T>::min();
  if (v >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

Action float_to_integer(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  ScalarType from = static_cast<ScalarType>(in.mod[0]), to = static_cast<ScalarType>(in.mod[1]);
  bool wide = in.ops[0].width == 8;
  for_lanes(mask, [&](int l) {
    double v = read_float(a, l, from);
    if ((in.mod[3] & kFtz) && from == ScalarType::f32 &&
        std::fpclassify(static_cast<float>(v)) == FP_SUBNORMAL)
      v = 0;
    bool nan = std::isnan(v);
    v = integral(v, in.mod[4] ? in.mod[4] - 1 : static_cast<uint32_t>(Rounding::zero));
    uint64_t bits;
    switch (to) {
      case ScalarType::u8:
        bits = clamp_to<uint8_t>(v);
        break;
      case ScalarType::u16:
        bits = clamp_to<uint16_t>(v);
        break;
      case ScalarType::u32:
        bits = clamp_to<uint32_t>(v);
        break;
      case ScalarType::u64:
        bits = clamp_to<uint64_t>(v);
        break;
      case ScalarType::s8:
        bits = static_cast<uint64_t>(int64_t{clamp_to<int8_t>(v)});
        break;
      case ScalarType::s16:
        bits = static_cast<uint64_t>(int64_t{clamp_to<int16_t>(v)});
        break;
      case ScalarType::s32:
        bits = static_cast<uint64_t>(int64_t{clamp_to<int32_t>(v)});
        break;
      default:
        bits = static_cast<uint64_t>(clamp_to<int64_t>(v));
        break;
    }
    // NaN gives 0, but the integer's top bit if source or result have 64 bits (H200).
    if (nan && (size_bytes(to) == 8 || from == ScalarType::f64)) {
      int shift = 64 - 8 * size_bytes(to);
      bits = is_signed(to) ? static_cast<uint64_t>(INT64_MIN >> shift) : 0x8000000000000000u >> shift;
    }
    if (size_bytes(to) == 2) bits &= 0xffff;
    if (wide)
      set<uint64_t>(d, l, bits);
    else
      set<uint32_t>(d, l, static_cast<uint32_t>(bits));
  });
  return Action::next;
}

int64_t read_integer(const Operand& op, const uint8_t* base, int lane, ScalarType t, bool* big) {
  uint64_t raw = op.width == 8 ? get<uint64_t>(base, lane) : get<uint32_t>(base, lane);
  *big = false;
  switch (t) {
    case ScalarType::u8:
    case ScalarType::b8:
      return static_cast<uint8_t>(raw);
    case ScalarType::s8:
      return static_cast<int8_t>(raw);
    case ScalarType::u16:
    case ScalarType::b16:
      return static_cast<uint16_t>(raw);
    case ScalarType::s16:
      return static_cast<int16_t>(raw);
    case ScalarType::u32:
    case ScalarType::b32:
      return static_cast<uint32_t>(raw);
    case ScalarType::s32:
      return static_cast<int32_t>(raw);
    case ScalarType::u64:
    case ScalarType::b64:
      *big = raw >> 63;
      return static_cast<int64_t>(raw);
    default:
      return static_cast<int64_t>(raw);
  }
}

Action integer_to_float(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  ScalarType from = static_cast<ScalarType>(in.mod[0]), to = static_cast<ScalarType>(in.mod[1]);
  for_lanes(mask, [&](int l) {
    bool big;
    int64_t v = read_integer(in.ops[1], a, l, from, &big);
    double high, low;
    if (big) {
      uint64_t u = static_cast<uint64_t>(v);
      high = static_cast<double>(u & ~0xffffffffull), low = static_cast<double>(u & 0xffffffff);
    } else {
      high = static_cast<double>(v - static_cast<int64_t>(static_cast<uint32_t>(v)));
      low = static_cast<double>(static_cast<uint32_t>(v));
    }
    // 64-bit integers have more bits than a double: round to odd first, to the target once.
    double value;
    if (to == ScalarType::f64)
      value = floating::rounded<double>(in.mod[2], [&] {
        volatile double x = high;
        return x + low;
      });
    else
      value = add_round_to_odd(high, low);
    write_float(d, l, to, value, in);
  });
  return Action::next;
}

Action integer_to_integer(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  ScalarType from = static_cast<ScalarType>(in.mod[0]), to = static_cast<ScalarType>(in.mod[1]);
  bool wide = in.ops[0].width == 8;
  for_lanes(mask, [&](int l) {
    bool big;
    int64_t v = read_integer(in.ops[1], a, l, from, &big);
    if (in.mod[3] & kSat) {
      int bits = 8 * size_bytes(to);
      if (is_signed(to)) {
        int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
        v = big || v > high ? high : v < -high - 1 ? -high - 1 : v;
      } else if (!big && v < 0) {
        v = 0;
      } else if (bits < 64 && (big || v >> bits)) {
        v = (int64_t{1} << bits) - 1;
      }
    }
    switch (to) {  // the destination's width decides how the bits above are filled
      case ScalarType::u8:
      case ScalarType::b8:
        v = static_cast<uint8_t>(v);
        break;
      case ScalarType::s8:
        v = static_cast<int8_t>(v);
        break;
      case ScalarType::u16:
      case ScalarType::b16:
        v = static_cast<uint16_t>(v);
        break;
      case ScalarType::s16:
        v = wide || in.mod[5] ? static_cast<int16_t>(v) : static_cast<uint16_t>(v);
        break;
      case ScalarType::u32:
      case ScalarType::b32:
        v = static_cast<uint32_t>(v);
        break;
      case ScalarType::s32:
        v = static_cast<int32_t>(v);
        break;
      default:
        break;
    }
    if (wide)
      set<uint64_t>(d, l, static_cast<uint64_t>(v));
    else
      set<uint32_t>(d, l, static_cast<uint32_t>(v) & (in.mod[5] ? ~0u : 0xffff));
  });
  return Action::next;
}

/// cvt.rn.X2.f32 d, a, b: a goes to the upper half (ptx-facts 1.8). mod[1]: element type.
Action pack_two(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t *a = w.read(in.ops[1]), *b = w.read(in.ops[2]);
  ScalarType to = static_cast<ScalarType>(in.mod[1]);
  bool plain = in.mod[2] == 0 && in.mod[3] == 0;
  int bits = 8 * size_bytes(to);
  for_lanes(mask, [&](int l) {
    float x = get<float>(a, l), y = get<float>(b, l);
    uint32_t high, low;
    if (plain && to == ScalarType::bf16 && !std::isnan(x) && !std::isnan(y)) {
      high = to_bf16_bits(x), low = to_bf16_bits(y);
    } else if (plain && to == ScalarType::f16 && !std::isnan(x) && !std::isnan(y)) {
      high = to_f16_bits(x), low = to_f16_bits(y);
    } else {
      if (in.mod[3] & kRelu) {
        if (!(x > 0) && !std::isnan(x)) x = 0;
        if (!(y > 0) && !std::isnan(y)) y = 0;
      }
      bool satfinite = in.mod[3] & kSatfinite;
      high = encode_float(x, to, static_cast<Rounding>(in.mod[2]), satfinite);
      low = encode_float(y, to, static_cast<Rounding>(in.mod[2]), satfinite);
    }
    set<uint32_t>(d, l, high << bits | low);
  });
  return Action::next;
}

/// e4m3x2 and e5m2x2 to f16x2, and f16x2 to them. mod[0], mod[1]: element types.
Action convert_pair(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint8_t* d = dst_of(w, in.ops[0]);
  const uint8_t* a = w.read(in.ops[1]);
  ScalarType from = static_cast<ScalarType>(in.mod[0]), to = static_cast<ScalarType>(in.mod[1]);
  int from_bits = 8 * size_bytes(from), to_bits = 8 * size_bytes(to);
  for_lanes(mask, [&](int l) {
    uint32_t v = get<uint32_t>(a, l), r = 0;
    for (int i = 0; i < 2; ++i) {
      double x = decode_float(v >> (from_bits * i) & ((1u << from_bits) - 1), from);
      if ((in.mod[3] & kRelu) && !(x > 0) && !std::isnan(x)) x = 0;
      r |= encode_float(x, to, Rounding::nearest_even, in.mod[3] & kSatfinite) << (to_bits * i);
    }
    set<uint32_t>(d, l, r);
  });
  return Action::next;
}

ScalarType element_of(ScalarType t) {
  switch (t) {
    case ScalarType::f16x2:
      return ScalarType::f16;
    case ScalarType::bf16x2:
      return ScalarType::bf16;
    case ScalarType::e4m3x2:
      return ScalarType::e4m3;
    case ScalarType::e5m2x2:
      return ScalarType::e5m2;
    default:
      return ScalarType::none;
  }
}

void decode_cvt(Decode& d) {
  if (d.has("pack")) d.fail("cvt.pack is not supported");
  uint32_t flags = 0;
  if (d.take("sat")) flags |= kSat;
  if (d.take("ftz")) flags |= kFtz;
  if (d.take("relu")) flags |= kRelu;
  if (d.take("satfinite")) flags |= kSatfinite;
  int whole = d.take_one_of({"rni", "rzi", "rmi", "rpi"});
  int rounding = d.take_one_of({"rn", "rz", "rm", "rp", "rna"});
  ScalarType to = d.need_type(), from = d.need_type();
  static constexpr Rounding kModes[] = {Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up,
                                        Rounding::nearest_away};
  d.out.mod = {static_cast<uint32_t>(from),
               static_cast<uint32_t>(to),
               static_cast<uint32_t>(rounding < 0 ? Rounding::nearest_even : kModes[rounding]),
               flags,
               whole < 0 ? 0 : 1 + static_cast<uint32_t>(kModes[whole]),
               0};
  if (ScalarType element = element_of(to); element != ScalarType::none) {
    d.out.mod[1] = static_cast<uint32_t>(element);
    int width = 4;
    if (from == ScalarType::f32) {
      d.need_count(3, 3);
      d.out.run = pack_two;
      d.dst(d.parsed(0), width, false);
      d.src(d.parsed(1), 4);
      d.src(d.parsed(2), 4);
      return;
    }
    ScalarType source = element_of(from);
    if (source == ScalarType::none) d.fail("conversion is not supported");
    d.need_count(2, 2);
    d.out.mod[0] = static_cast<uint32_t>(source);
    d.out.run = convert_pair;
    d.dst(d.parsed(0), width, false);
    d.src(d.parsed(1), 4);
    return;
  }
  d.need_count(2, 2);
  auto width_of = [](ScalarType t) { return std::max(4, size_bytes(t)); };
  if (is_float(to) != is_float(from) || !is_float(to)) {
    d.dst_at_least(d.parsed(0), width_of(to));
    d.src_at_least(d.parsed(1), width_of(from));
  } else {
    d.dst(d.parsed(0), width_of(to), false);
    d.src_as(d.parsed(1), from);
  }
  if (is_float(from) && is_float(to)) {
    // Same size without a rounding to integral: .f32.f32 is a (flushing, saturating) move.
    if (size_bytes(to) < size_bytes(from) && rounding < 0 && whole < 0) d.fail("missing rounding mode");
    d.out.run = float_to_float;
  } else if (is_float(from)) {
    if (whole < 0) d.fail("missing rounding mode");
    d.out.run = float_to_integer;
  } else if (is_float(to)) {
    if (rounding < 0) d.fail("missing rounding mode");
    d.out.run = integer_to_float;
  } else {
    // A 16-bit register holds 16 bits only; a 32-bit one is filled up.
    int bits = d.register_bits(d.parsed(0));
    d.out.mod[5] = bits >= 32;
    d.out.run = integer_to_integer;
  }
}

}  // namespace

void register_convert(OpcodeTable& t) { t["cvt"] = decode_cvt; }

}  // namespace gemmtune::emulator
