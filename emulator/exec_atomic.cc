// atom and red (PTX ISA 9.7.13.6, .7). Clusters that use them on global memory share one host thread, so
// plain read-modify-write is atomic.
#include <fmt/format.h>

#include <cmath>

#include "emulator/exec_float.h"

namespace gemmtune::emulator {

namespace {

enum Op : uint32_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };

template <class T>
T integer_op(uint32_t op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case kAdd:
      return T(U(old) + U(b));
    case kMin:
      return std::min(old, b);
    case kMax:
      return std::max(old, b);
    case kAnd:
      return old & b;
    case kOr:
      return old | b;
    case kXor:
      return old ^ b;
    case kExch:
      return b;
    case kCas:
      return old == b ? c : old;
    case kInc:
      return U(old) >= U(b) ? T{0} : T(old + 1);
    default:
      return old == 0 || U(old) > U(b) ? b : T(old - 1);
  }
}

template <class T>
uint64_t typed(uint32_t op, uint64_t old, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(
      integer_op<T>(op, static_cast<T>(old), static_cast<T>(b), static_cast<T>(c))));
}

constexpr float kNan = std::bit_cast<float>(0x7fffffffu);

float pick_float(uint32_t op, float a, float b) {
  if (op == kAdd) return std::isnan(a + b) ? kNan : a + b;  // the one NaN, from red and cp.reduce too (H200)
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return (op == kMin) == (b < a) ? b : a;
}

uint16_t small_float(uint32_t op, uint16_t a, uint16_t b, ScalarType t) {
  if (op != kAdd) return floating::half_compare(op == kMax, a, b, t, 0);
  return static_cast<uint16_t>(encode_float(add_round_to_odd(decode_float(a, t), decode_float(b, t)), t));
}

/// Global memory and bulk copies hand on a NaN as it is, the operand's before memory's (H200).
double add_doubles(double old, double b) {
  if (std::isnan(b)) return b;
  if (std::isnan(old)) return old;
  return floating::with_nan_of(old + b, old, b);
}

}  // namespace

uint64_t atomic_value(uint32_t op, ScalarType t, uint64_t old, uint64_t b, uint64_t c) {
  switch (t) {
    case ScalarType::b16:
    case ScalarType::u16:
      return typed<uint16_t>(op, old, b, c);
    case ScalarType::b32:
    case ScalarType::u32:
      return typed<uint32_t>(op, old, b, c);
    case ScalarType::s32:
      return typed<int32_t>(op, old, b, c);
    case ScalarType::b64:
    case ScalarType::u64:
      return typed<uint64_t>(op, old, b, c);
    case ScalarType::s64:
      return typed<int64_t>(op, old, b, c);
    case ScalarType::f32:
      return std::bit_cast<uint32_t>(
          pick_float(op, std::bit_cast<float>(uint32_t(old)), std::bit_cast<float>(uint32_t(b))));
    case ScalarType::f64:
      return std::bit_cast<uint64_t>(add_doubles(std::bit_cast<double>(old), std::bit_cast<double>(b)));
    case ScalarType::f16:
    case ScalarType::bf16:
      return small_float(op, uint16_t(old), uint16_t(b), t);
    case ScalarType::f16x2:
    case ScalarType::bf16x2: {
      ScalarType e = t == ScalarType::f16x2 ? ScalarType::f16 : ScalarType::bf16;
      return uint32_t{small_float(op, uint16_t(old), uint16_t(b), e)} |
             uint32_t{small_float(op, uint16_t(old >> 16), uint16_t(b >> 16), e)} << 16;
    }
    default:
      return old;
  }
}

namespace {

/// What atom and red leave in memory. In global memory f32 sums know no subnormals; in shared memory f64
/// sums are those of add.f64 (H200).
uint64_t updated(uint32_t op, ScalarType t, uint64_t old, uint64_t b, uint64_t c, bool shared) {
  using floating::flush;
  if (op == kAdd && t == ScalarType::f64 && shared) {
    double x = std::bit_cast<double>(old), y = std::bit_cast<double>(b);
    return std::bit_cast<uint64_t>(floating::with_nan_of(x + y, x, y));
  }
  if (op != kAdd || t != ScalarType::f32 || shared) return atomic_value(op, t, old, b, c);
  auto flushed = [](uint64_t v) {
    return std::bit_cast<uint32_t>(flush(std::bit_cast<float>(static_cast<uint32_t>(v))));
  };
  return flushed(atomic_value(op, t, flushed(old), flushed(b), c));
}

/// mod: [0] op, [1] type, [2] elements, [3] shared (1 own, 2 cluster) or 0, [4] is atom.
/// Operands: destinations (atom), address, b elements, c.
Action atomic(Warp& w, Fragment&, const Instr& in, Mask mask) {
  w.synchronize_through_memory(true, true);
  ScalarType t = static_cast<ScalarType>(in.mod[1]);
  uint32_t bytes = static_cast<uint32_t>(size_bytes(t)), n = in.mod[2];
  bool wants_old = in.mod[4];
  const Operand* operand = in.ops + (wants_old ? n : 0);
  Cluster& cluster = *w.cta->cluster;
  ++cluster.tick;
  ++cluster.events;
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint64_t address = lane_address(w, operand[0], lane);
    if (address % (bytes * n))
      throw Fault(Check::misaligned,
                  fmt::format("lane {}: address {:#x} is not a multiple of {}", lane, address, bytes * n));
    uint8_t* at;
    if (in.mod[3]) {
      SharedPlace p = shared_place(w, address, bytes * n, in.mod[3] == 1);
      note_generic_read(w, *p.cta, p.offset, bytes * n);
      note_generic_write(w, lane, *p.cta, p.offset, bytes * n);
      at = p.cta->smem.data() + p.offset;
    } else {
      at = generic_place(w, lane, address, bytes * n, true);
    }
    bool shared = in.mod[3] || address >> kWindowShift == kSharedWindow >> kWindowShift;
    for (uint32_t i = 0; i < n; ++i, at += bytes) {
      uint64_t old = 0;
      std::memcpy(&old, at, bytes);
      uint64_t b = lane_value(w, operand[1 + i], lane);
      uint64_t c = in.mod[0] == kCas ? lane_value(w, operand[1 + n], lane) : 0;
      uint64_t now = updated(in.mod[0], t, old, b, c, shared);
      std::memcpy(at, &now, bytes);
      if (wants_old && in.ops[i].kind != Operand::Kind::none) {
        uint8_t* d = dst_of(w, in.ops[i]);
        if (in.ops[i].width == 8)
          set<uint64_t>(d, lane, old);
        else
          set<uint32_t>(d, lane, static_cast<uint32_t>(old));
      }
    }
  }
  return Action::next;
}

/// 128-bit exch and cas.
Action atomic_wide(Warp& w, Fragment&, const Instr& in, Mask mask) {
  w.synchronize_through_memory(true, true);
  ++w.cta->cluster->events;
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint64_t address = lane_address(w, in.ops[1], lane);
    if (address % 16)
      throw Fault(Check::misaligned, fmt::format("address {:#x} is not a multiple of 16", address));
    uint8_t* at = generic_place(w, lane, in.mod[3] ? kSharedWindow | address : address, 16, true);
    uint8_t old[16];
    std::memcpy(old, at, 16);
    const uint8_t* b = w.read(in.ops[2]) + 16 * lane;
    if (in.mod[0] == kExch)
      std::memcpy(at, b, 16);
    else if (std::memcmp(old, b, 16) == 0)
      std::memcpy(at, w.read(in.ops[3]) + 16 * lane, 16);
    if (in.ops[0].kind != Operand::Kind::none) std::memcpy(dst_of(w, in.ops[0]) + 16 * lane, old, 16);
  }
  return Action::next;
}

/// red.async.shared::cluster.mbarrier::complete_tx::bytes [a], b, [mbar]. Operands: a, b, mbar.
Action red_async(Warp& w, Fragment&, const Instr& in, Mask mask) {
  ScalarType t = static_cast<ScalarType>(in.mod[1]);
  uint32_t bytes = static_cast<uint32_t>(size_bytes(t));
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    SharedPlace to = shared_place(w, lane_address(w, in.ops[0], lane), bytes, false);
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[2], lane), false);
    uint64_t b = lane_value(w, in.ops[1], lane);
    uint32_t op = in.mod[0];
    submit(w, nullptr, [=, passed = w.release()] {
      uint64_t old = 0;
      uint8_t* at = to.cta->smem.data() + to.offset;
      std::memcpy(&old, at, bytes);
      uint64_t now = atomic_value(op, t, old, b, 0);
      std::memcpy(at, &now, bytes);
      mbarrier_complete_tx(*bar.cta, bar.offset, bytes, &passed);
    });
  }
  return Action::next;
}

const std::initializer_list<std::string_view> kOps = {"add", "min",  "max", "and", "or",
                                                      "xor", "exch", "cas", "inc", "dec"};

void decode_atomic(Decode& d, bool is_atom) {
  bool async = d.take("async");
  d.take_one_of({"relaxed", "acquire", "release", "acq_rel"});
  d.drop({"cta", "cluster", "gpu", "sys"});
  int space = d.take_one_of({"global", "shared", "shared::cta", "shared::cluster"});
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of(kOps));
  d.take("noftz");
  bool hint = d.take("L2::cache_hint");
  int vector = d.take_one_of({"v2", "v4", "v8"});
  uint32_t n = vector < 0 ? 1 : 2u << vector;
  if (async) {
    d.need_one_of({"mbarrier::complete_tx::bytes"});
    ScalarType t = d.need_type();
    d.need_count(3, 3);
    d.out.mod[1] = static_cast<uint32_t>(t);
    d.address(d.parsed(0));
    d.src(d.parsed(1), std::max(4, size_bytes(t)));
    d.address(d.parsed(2));
    d.out.run = red_async;
    return;
  }
  ScalarType t = d.need_type();
  d.out.mod[1] = static_cast<uint32_t>(t);
  d.out.mod[2] = n;
  d.out.mod[3] = space == 1 || space == 2 ? 1 : space == 3 ? 2 : 0;
  d.out.mod[4] = is_atom;
  bool cas = d.out.mod[0] == kCas;
  size_t count = (is_atom ? 1 : 0) + 2 + (cas ? 1 : 0) + (hint ? 1 : 0);
  d.need_count(count, count);
  size_t at = 0;
  int width = std::max(4, size_bytes(t));
  if (space <= 0) d.module.program().clusters_communicate = true;
  bool floating = t == ScalarType::f32 || t == ScalarType::f64 || t == ScalarType::f16 ||
                  t == ScalarType::bf16 || t == ScalarType::f16x2 || t == ScalarType::bf16x2;
  if (floating && d.out.mod[0] > kMax) d.fail("operation is not supported for this type");
  if (t == ScalarType::b128) {
    if (d.out.mod[0] != kExch && !cas) d.fail("operation is not supported for this type");
    d.dst(d.parsed(0), 16);
    d.address(d.parsed(1));
    d.src(d.parsed(2), 16);
    if (cas) d.src(d.parsed(3), 16);
    d.out.run = atomic_wide;
    return;
  }
  if (is_atom) {
    auto parts = Decode::parts(d.parsed(at++));
    if (parts.size() == 1 && parts[0]->kind == ParsedOperand::Kind::sink) {
      for (uint32_t i = 0; i < n; ++i) d.none();
    } else {
      if (parts.size() != n) d.fail("wrong number of vector elements");
      for (const ParsedOperand* p : parts) d.dst(*p, width);
    }
  }
  d.address(d.parsed(at++));
  auto parts = Decode::parts(d.parsed(at++));
  if (parts.size() != n) d.fail("wrong number of vector elements");
  for (const ParsedOperand* p : parts) d.src_as(*p, t);
  if (cas) d.src_as(d.parsed(at++), t);
  d.out.run = atomic;
}

}  // namespace

void register_atomic(OpcodeTable& t) {
  t["atom"] = [](Decode& d) { decode_atomic(d, true); };
  t["red"] = [](Decode& d) { decode_atomic(d, false); };
}

}  // namespace gemmtune::emulator
