// setp and set (PTX ISA 9.7.6).
#include <cmath>

#include "emulator/exec.h"
#include "emulator/numeric.h"

namespace gemmtune::emulator {
namespace {

enum Comparison { eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };
const std::initializer_list<std::string_view> kComparisons = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                                              "lo",  "ls",  "hi",  "hs",  "equ", "neu",
                                                              "ltu", "leu", "gtu", "geu", "num", "nan"};

template <class T>
bool holds(uint32_t comparison, T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>) unordered = std::isnan(a) || std::isnan(b);
  switch (comparison) {
    case eq:
      return !unordered && a == b;
    case ne:
      return !unordered && a != b;
    case lt:
    case lo:
      return a < b;
    case le:
    case ls:
      return a <= b;
    case gt:
    case hi:
      return a > b;
    case ge:
    case hs:
      return a >= b;
    case equ:
      return unordered || a == b;
    case neu:
      return unordered || a != b;
    case ltu:
      return unordered || a < b;
    case leu:
      return unordered || a <= b;
    case gtu:
      return unordered || a > b;
    case geu:
      return unordered || a >= b;
    case num:
      return !unordered;
    default:
      return unordered;
  }
}

/// mod[0] comparison, mod[1] combination (0 none, 1 and, 2 or, 3 xor), mod[2] ftz. Operands: p, q, a, b, c.
template <class T>
Mask compare_lanes(Warp& w, const Instr& in, Mask mask, int first) {
  const uint8_t *a = w.read(in.ops[first]), *b = w.read(in.ops[first + 1]);
  Mask result = 0;
  uint32_t comparison = in.mod[0];
  auto body = [&](auto test) {
    for_lanes(mask, [&](int l) { result |= Mask{test(get<T>(a, l), get<T>(b, l))} << l; });
  };
  if constexpr (std::is_integral_v<T>) {
    switch (comparison) {
      case eq:
        body([](T x, T y) { return x == y; });
        return result;
      case ne:
        body([](T x, T y) { return x != y; });
        return result;
      case lt:
      case lo:
        body([](T x, T y) { return x < y; });
        return result;
      case le:
      case ls:
        body([](T x, T y) { return x <= y; });
        return result;
      case gt:
      case hi:
        body([](T x, T y) { return x > y; });
        return result;
      default:
        body([](T x, T y) { return x >= y; });
        return result;
    }
  } else {
    bool ftz = in.mod[2];
    body([&](T x, T y) {
      if (ftz) {
        if (std::fpclassify(x) == FP_SUBNORMAL) x = 0;
        if (std::fpclassify(y) == FP_SUBNORMAL) y = 0;
      }
      return holds(comparison, x, y);
    });
    return result;
  }
}

Mask compare_half(Warp& w, const Instr& in, Mask mask, int first, ScalarType type, int half) {
  const uint8_t *a = w.read(in.ops[first]), *b = w.read(in.ops[first + 1]);
  Mask result = 0;
  for_lanes(mask, [&](int l) {
    uint32_t x = get<uint32_t>(a, l) >> (16 * half) & 0xffff, y = get<uint32_t>(b, l) >> (16 * half) & 0xffff;
    if (in.mod[2]) {  // .ftz exists for f16 only
      if (!(x & 0x7c00)) x &= 0x8000;
      if (!(y & 0x7c00)) y &= 0x8000;
    }
    if (holds(in.mod[0], decode_float(x, type), decode_float(y, type))) result |= 1u << l;
  });
  return result;
}

Mask combine(Warp& w, const Instr& in, Mask result, int index) {
  if (!in.mod[1]) return result;
  Mask c = w.predicate(in.ops[index]);
  return in.mod[1] == 1 ? result & c : in.mod[1] == 2 ? result | c : result ^ c;
}

template <class T>
Action setp(Warp& w, Fragment&, const Instr& in, Mask mask) {
  Mask r = compare_lanes<T>(w, in, mask, 2);
  Mask p = combine(w, in, r, 4), q = combine(w, in, ~r, 4);
  set_predicate(w, in.ops[0], mask, p);
  set_predicate(w, in.ops[1], mask, q);
  return Action::next;
}

/// Two halves: p from the lower, q from the upper. mod[3] type, mod[4] packed.
Action setp_half(Warp& w, Fragment&, const Instr& in, Mask mask) {
  ScalarType type = static_cast<ScalarType>(in.mod[3]);
  Mask low = compare_half(w, in, mask, 2, type, 0);
  Mask high = in.mod[4] ? compare_half(w, in, mask, 2, type, 1) : ~low;
  Mask p = combine(w, in, low, 4), q = combine(w, in, high, 4);
  set_predicate(w, in.ops[0], mask, p);
  set_predicate(w, in.ops[1], mask, q);
  return Action::next;
}

/// mod[3]: result is 1.0f instead of all ones.
template <class T>
Action set_value(Warp& w, Fragment&, const Instr& in, Mask mask) {
  Mask r = combine(w, in, compare_lanes<T>(w, in, mask, 1), 3);
  uint8_t* d = dst_of(w, in.ops[0]);
  uint32_t yes = in.mod[3] ? 0x3f800000u : ~0u;
  for_lanes(mask, [&](int l) { gemmtune::emulator::set<uint32_t>(d, l, r >> l & 1 ? yes : 0); });
  return Action::next;
}

template <template <class> class Wrapper>
Handler pick(Decode& d, ScalarType t) {
  switch (t) {
    case ScalarType::b16:
    case ScalarType::u16:
      return Wrapper<uint16_t>::run;
    case ScalarType::b32:
    case ScalarType::u32:
      return Wrapper<uint32_t>::run;
    case ScalarType::b64:
    case ScalarType::u64:
      return Wrapper<uint64_t>::run;
    case ScalarType::s16:
      return Wrapper<int16_t>::run;
    case ScalarType::s32:
      return Wrapper<int32_t>::run;
    case ScalarType::s64:
      return Wrapper<int64_t>::run;
    case ScalarType::f32:
      return Wrapper<float>::run;
    case ScalarType::f64:
      return Wrapper<double>::run;
    default:
      d.fail("type is not supported here");
  }
}
template <class T>
struct SetpOf {
  static constexpr Handler run = setp<T>;
};
template <class T>
struct SetOf {
  static constexpr Handler run = set_value<T>;
};

void common(Decode& d) {
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of(kComparisons));
  d.out.mod[1] = static_cast<uint32_t>(d.take_one_of({"and", "or", "xor"}) + 1);
  d.out.mod[2] = d.take("ftz");
}

void decode_setp(Decode& d) {
  common(d);
  ScalarType t = d.need_type();
  size_t n = d.out.mod[1] ? 4 : 3;
  d.need_count(n, n);
  const ParsedOperand& to = d.parsed(0);
  if (to.kind == ParsedOperand::Kind::pair) {
    d.dst(to.parts[0], 0);
    d.dst(to.parts[1], 0);
  } else {
    d.dst(to, 0);
    d.none();
  }
  d.src_as(d.parsed(1), t);
  d.src_as(d.parsed(2), t);
  if (d.out.mod[1]) d.src(d.parsed(3), 0);
  bool half = t == ScalarType::f16 || t == ScalarType::bf16,
       pair = t == ScalarType::f16x2 || t == ScalarType::bf16x2;
  if (half && to.kind == ParsedOperand::Kind::pair) d.fail("a single f16 or bf16 compare has one result");
  if (half || pair) {
    d.out.run = setp_half;
    d.out.mod[3] = static_cast<uint32_t>(t == ScalarType::f16 || t == ScalarType::f16x2 ? ScalarType::f16
                                                                                        : ScalarType::bf16);
    d.out.mod[4] = pair;
    return;
  }
  d.out.run = pick<SetpOf>(d, t);
}

void decode_set(Decode& d) {
  common(d);
  ScalarType to = d.need_type(), t = d.need_type();
  size_t n = d.out.mod[1] ? 4 : 3;
  d.need_count(n, n);
  if (size_bytes(to) != 4) d.fail("type is not supported here");
  d.out.mod[3] = to == ScalarType::f32;
  d.dst(d.parsed(0), 4, false);
  d.src_as(d.parsed(1), t);
  d.src_as(d.parsed(2), t);
  if (d.out.mod[1]) d.src(d.parsed(3), 0);
  d.out.run = pick<SetOf>(d, t);
}

}  // namespace

void register_compare(OpcodeTable& t) {
  t["setp"] = decode_setp;
  t["set"] = decode_set;
}

}  // namespace gemmtune::emulator
