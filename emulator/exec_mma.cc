// mma.sync, ldmatrix, stmatrix (ptx-facts 1.8, 10.2).
#include <fmt/format.h>

#include "emulator/exec.h"
#include "emulator/matrix.h"
#include "emulator/numeric.h"

namespace gemmtune::emulator {
namespace {

// --- ldmatrix, stmatrix ---

/// mod: [0] matrices, [1] transposed, [2] own shared (else generic). Operands: registers, address.
template <bool kLoad>
Action matrix_move(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  uint32_t n = in.mod[0];
  Cluster& cluster = *w.cta->cluster;
  ++cluster.tick;
  ++cluster.events;
  for (uint32_t j = 0; j < n; ++j) {
    uint8_t* rows[8];
    for (int r = 0; r < 8; ++r) {
      int lane = static_cast<int>(8 * j) + r;
      uint64_t address = lane_address(w, in.ops[n], lane);
      if (address % 16)
        throw Fault(Check::misaligned,
                    fmt::format("lane {}: row address {:#x} is not a multiple of 16", lane, address));
      SharedPlace p = shared_place(w, address, 16, true);
      if (kLoad)
        note_generic_read(w, *p.cta, p.offset, 16);
      else
        note_generic_write(w, lane, *p.cta, p.offset, 16);
      rows[r] = p.cta->smem.data() + p.offset;
    }
    uint8_t* reg = dst_of(w, in.ops[j]);
    const uint8_t* source = w.read(in.ops[j]);
    for (int l = 0; l < 32; ++l) {
      uint32_t v = kLoad ? 0 : get<uint32_t>(source, l);
      for (int h = 0; h < 2; ++h) {
        int row = l / 4, column = 2 * (l % 4) + h;
        if (in.mod[1]) std::swap(row, column);
        if constexpr (kLoad) {
          uint16_t half;
          std::memcpy(&half, rows[row] + 2 * column, 2);
          v |= uint32_t{half} << (16 * h);
        } else {
          uint16_t half = static_cast<uint16_t>(v >> (16 * h));
          std::memcpy(rows[row] + 2 * column, &half, 2);
        }
      }
      if (kLoad) set<uint32_t>(reg, l, v);
    }
  }
  return Action::next;
}

template <bool kLoad>
void decode_matrix_move(Decode& d) {
  d.need_one_of({"sync"});
  d.need_one_of({"aligned"});
  d.need_one_of({"m8n8"});
  static constexpr uint32_t kCounts[] = {1, 2, 4};
  d.out.mod[0] = kCounts[d.need_one_of({"x1", "x2", "x4"})];
  d.out.mod[1] = d.take("trans");
  d.take_one_of({"shared", "shared::cta"});
  if (d.need_type() != ScalarType::b16) d.fail("only .b16 matrices are supported");
  d.need_count(2, 2);
  auto parts = Decode::parts(d.parsed(kLoad ? 0 : 1));
  if (parts.size() != d.out.mod[0]) d.fail("wrong number of vector elements");
  for (const ParsedOperand* p : parts) {
    if (kLoad)
      d.dst(*p, 4, false);
    else
      d.src(*p, 4);
  }
  d.address(d.parsed(kLoad ? 1 : 0));
  // A generic address of shared memory works in the unqualified form, as plain_shared() accepts both.
  d.out.run = matrix_move<kLoad>;
}

// --- mma.sync ---

/// mod: [0] k, [1] type of A, [2] type of B, [3] type of D and C (f32, f16, s32), [4] .satfinite.
/// Operands: D, A, B, C registers.
Action mma(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  uint32_t k = in.mod[0];
  ScalarType ta = static_cast<ScalarType>(in.mod[1]), tb = static_cast<ScalarType>(in.mod[2]),
             td = static_cast<ScalarType>(in.mod[3]);
  uint32_t size = static_cast<uint32_t>(size_bytes(ta)), per_register = 4 / size;
  uint32_t a_registers = 16 * k * size / 128, b_registers = 8 * k * size / 128;
  uint32_t d_registers = td == ScalarType::f16 ? 2 : 4;
  const Operand *da = in.ops + d_registers, *db = da + a_registers, *dc = db + b_registers;
  std::vector<float> a(16 * k), b(k * 8);
  float c[16][8];
  float* rows[16];
  int32_t ci[16][8];
  for (int i = 0; i < 16; ++i) rows[i] = c[i];
  for (int l = 0; l < 32; ++l) {
    float values[4];
    for (uint32_t r = 0; r < a_registers; ++r) {
      convert_elements(w.read(da[r]) + 4 * l, per_register, ta, values);
      for (uint32_t e = 0; e < per_register; ++e) {
        uint32_t row = static_cast<uint32_t>(l) / 4 + 8 * (r & 1);
        uint32_t column = per_register * (static_cast<uint32_t>(l) & 3) + e + 4 * per_register * (r >> 1);
        a[row * k + column] = values[e];
      }
    }
    for (uint32_t r = 0; r < b_registers; ++r) {
      convert_elements(w.read(db[r]) + 4 * l, per_register, tb, values);
      for (uint32_t e = 0; e < per_register; ++e)
        b[(per_register * (static_cast<uint32_t>(l) & 3) + e + 4 * per_register * r) * 8 +
          static_cast<uint32_t>(l) / 4] = values[e];
    }
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = static_cast<uint32_t>(l) / 4 + 8 * (i >> 1),
               column = 2 * (static_cast<uint32_t>(l) & 3) + (i & 1);
      if (td == ScalarType::f16)
        c[row][column] = static_cast<float>(
            decode_float(get<uint32_t>(w.read(dc[i >> 1]), l) >> (16 * (i & 1)) & 0xffff, ScalarType::f16));
      else if (td == ScalarType::s32)
        ci[row][column] = get<int32_t>(w.read(dc[i]), l);
      else
        c[row][column] = get<float>(w.read(dc[i]), l);
    }
  }
  if (td == ScalarType::s32) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        int64_t sum = ci[i][j];
        for (uint32_t p = 0; p < k; ++p)
          sum += static_cast<int64_t>(a[static_cast<uint32_t>(i) * k + p]) *
                 static_cast<int64_t>(b[p * 8 + static_cast<uint32_t>(j)]);
        if (in.mod[4]) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
        ci[i][j] = static_cast<int32_t>(sum);
      }
  } else if (size == 1) {
    // fp8: two steps of half the k, k % 4 in {0, 1} then {2, 3}, from zero; C is added with ordinary
    // rounding.
    float sums[16][8] = {};
    for (uint32_t step = 0; step < 2; ++step) {
      std::vector<float> pa, pb;
      for (uint32_t i = 0; i < 16; ++i)
        for (uint32_t p = 0; p < k; ++p)
          if ((p & 2) == 2 * step) pa.push_back(a[i * k + p]);
      for (uint32_t p = 0; p < k; ++p)
        if ((p & 2) == 2 * step) pb.insert(pb.end(), b.begin() + p * 8, b.begin() + p * 8 + 8);
      float* to[16];
      for (int i = 0; i < 16; ++i) to[i] = sums[i];
      AccumulationRule rule;  // of f16, which the operands become first
      multiply_exact(16, 8, k / 2, pa.data(), k / 2, pb.data(), 8, to, step == 1, rule);
    }
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        c[i][j] += sums[i][j];
        if (std::isnan(c[i][j])) c[i][j] = std::bit_cast<float>(0x7fffffffu);
      }
  } else {
    AccumulationRule rule{25, 24, ta, tb, td == ScalarType::f16};
    multiply_hopper(16, 8, k, a.data(), k, b.data(), 8, rows, true, rule);
  }
  for (int l = 0; l < 32; ++l)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = static_cast<uint32_t>(l) / 4 + 8 * (i >> 1),
               column = 2 * (static_cast<uint32_t>(l) & 3) + (i & 1);
      if (td == ScalarType::f16) {
        uint8_t* d = dst_of(w, in.ops[i >> 1]);
        uint32_t old = i & 1 ? get<uint32_t>(d, l) & 0xffff : 0;
        set<uint32_t>(d, l, old | encode_float(c[row][column], ScalarType::f16) << (16 * (i & 1)));
      } else if (td == ScalarType::s32) {
        set<int32_t>(dst_of(w, in.ops[i]), l, ci[row][column]);
      } else {
        set<float>(dst_of(w, in.ops[i]), l, c[row][column]);
      }
    }
  return Action::next;
}

void decode_mma(Decode& d) {
  d.need_one_of({"sync"});
  d.need_one_of({"aligned"});
  static constexpr uint32_t kDepths[] = {4, 8, 16, 32};
  uint32_t k = kDepths[d.need_one_of({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32"})];
  d.need_one_of({"row"});
  d.need_one_of({"col"});
  d.out.mod[4] = d.take("satfinite");
  d.take("kind::f8f6f4");
  ScalarType td = d.need_type(), ta = d.need_type(), tb = d.need_type(), tc = d.need_type();
  bool is_integer = is_integer_element(ta);
  bool known =
      td == tc && ((td == ScalarType::f32 && !is_integer) ||
                   (td == ScalarType::f16 && ta == ScalarType::f16) || (td == ScalarType::s32 && is_integer));
  uint32_t size = static_cast<uint32_t>(size_bytes(ta));
  if (!known || size_bytes(tb) != size_bytes(ta) || k * size < 16 || k * size > 32)
    d.fail("this mma shape or type is not supported");
  if (ta != ScalarType::f16 && ta != ScalarType::bf16 && ta != ScalarType::tf32 && ta != ScalarType::e4m3 &&
      ta != ScalarType::e5m2 && !is_integer)
    d.fail("this mma type is not supported");
  d.out.mod[0] = k;
  d.out.mod[1] = static_cast<uint32_t>(ta);
  d.out.mod[2] = static_cast<uint32_t>(tb);
  d.out.mod[3] = static_cast<uint32_t>(td);
  d.need_count(4, 4);
  size_t d_registers = td == ScalarType::f16 ? 2 : 4;
  size_t sizes[] = {d_registers, 16 * k * size / 128, 8 * k * size / 128, d_registers};
  for (size_t i = 0; i < 4; ++i) {
    auto parts = Decode::parts(d.parsed(i));
    if (parts.size() != sizes[i]) d.fail("wrong number of vector elements");
    for (const ParsedOperand* p : parts) {
      if (i == 0)
        d.dst(*p, 4, false);
      else
        d.src(*p, 4);
    }
  }
  d.out.run = mma;
}

}  // namespace

void register_mma(OpcodeTable& t) {
  t["ldmatrix"] = decode_matrix_move<true>;
  t["stmatrix"] = decode_matrix_move<false>;
  t["mma"] = decode_mma;
}

}  // namespace gemmtune::emulator
