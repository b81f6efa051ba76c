// wgmma (ptx-facts 1.7). Each warp of the warpgroup computes its own 16 rows when it gets there; a multiply
// is complete for every warp once all four have run it. CUTLASS and DeepGEMM rely on that: after
// wgmma.wait_group one thread of the warpgroup releases the stage for all of it.
#include <fmt/format.h>

#include "emulator/exec.h"
#include "emulator/matrix.h"
#include "emulator/numeric.h"

namespace gemmtune::emulator {
namespace {

constexpr size_t kStartsKept = 16;  ///< more groups than a kernel leaves open

constexpr uint32_t kARegisters = 1, kATransposed = 2, kBTransposed = 4, kANegated = 8, kBNegated = 16;

struct Types {
  ScalarType a, b, d;
};
Types types_of(const Instr& in) {
  return {static_cast<ScalarType>(in.mod[1] & 0xff), static_cast<ScalarType>(in.mod[1] >> 8 & 0xff),
          static_cast<ScalarType>(in.mod[1] >> 16 & 0xff)};
}

/// Everything one warp's part of a wgmma needs once it has been issued.
struct Job {
  uint32_t n, k;
  Types types;
  uint32_t flags;
  bool accumulate;
  MatrixOperand a, b;
  std::vector<float> a_registers;  ///< 16 x k
  std::vector<uint32_t> d_offsets;
  int warp_row;
};

/// Column of accumulator register i of a lane, and the row inside the warp's 16.
uint32_t column_of(uint32_t lane, uint32_t i) { return 8 * (i >> 2) + 2 * (lane & 3) + (i & 1); }
uint32_t row_of(uint32_t lane, uint32_t i) { return lane / 4 + 8 * (i >> 1 & 1); }

void read_accumulators(Warp& w, const Job& job, float* d) {
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t i = 0; i < job.n / 2; ++i) {
      float v;
      if (job.types.d == ScalarType::f16) {
        uint32_t pair = get<uint32_t>(w.registers.get() + job.d_offsets[i >> 1], static_cast<int>(l));
        v = static_cast<float>(decode_float(pair >> (16 * (i & 1)) & 0xffff, ScalarType::f16));
      } else {
        v = get<float>(w.registers.get() + job.d_offsets[i], static_cast<int>(l));
      }
      d[row_of(l, i) * job.n + column_of(l, i)] = v;
    }
}

void write_accumulators(Warp& w, const Job& job, const float* d) {
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t i = 0; i < job.n / 2; ++i) {
      float v = d[row_of(l, i) * job.n + column_of(l, i)];
      if (job.types.d == ScalarType::f16) {
        uint8_t* at = w.registers.get() + job.d_offsets[i >> 1];
        uint32_t half = encode_float(v, ScalarType::f16);
        uint32_t old = i & 1 ? get<uint32_t>(at, static_cast<int>(l)) & 0xffff : 0;
        set<uint32_t>(at, static_cast<int>(l), old | half << (16 * (i & 1)));
      } else {
        set<float>(w.registers.get() + job.d_offsets[i], static_cast<int>(l), v);
      }
    }
}

void multiply_integers(Warp& w, const Job& job, const float* a, const float* b) {
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t i = 0; i < job.n / 2; ++i) {
      uint32_t row = row_of(l, i), column = column_of(l, i);
      uint8_t* at = w.registers.get() + job.d_offsets[i];
      uint32_t sum = job.accumulate ? get<uint32_t>(at, static_cast<int>(l)) : 0;
      for (uint32_t p = 0; p < job.k; ++p)
        sum += static_cast<uint32_t>(static_cast<int32_t>(a[row * job.k + p]) *
                                     static_cast<int32_t>(b[p * job.n + column]));
      set<uint32_t>(at, static_cast<int>(l), sum);
    }
}

/// Visits the warps of this warp's warpgroup.
template <class F>
void for_warpgroup(Warp& w, F visit) {
  size_t first = static_cast<size_t>(w.index) / 4 * 4;
  for (size_t i = first; i < first + 4; ++i) visit(*w.cta->warps[i]);
}

/// B as [k][n], read by the first of the warpgroup's warps that gets to this multiply: it is one operation of
/// all four.
const std::vector<float>& read_b(Warp& w, const Job& job, uint64_t sequence) {
  auto& caches = w.cta->wgmma_panels;
  caches.resize(w.cta->warps.size() / 4);
  WgmmaPanel& cache = caches[static_cast<size_t>(w.index) / 4];
  if (cache.sequence != sequence) {
    cache.values.resize(size_t{job.k} * job.n);
    read_operand(job.b, w.cta->smem, cache.values.data(), true, job.n);
    if (job.flags & kBNegated)
      for (float& v : cache.values) v = -v;
    cache.sequence = sequence;
  }
  return cache.values;
}

void run(Warp& w, const Job& job, uint64_t sequence) {
  static thread_local std::vector<float> a, d;
  const std::vector<uint8_t>& smem = w.cta->smem;
  d.resize(size_t{16} * job.n);
  const std::vector<float>& b = read_b(w, job, sequence);
  if (job.flags & kARegisters) {
    a = job.a_registers;
  } else {
    a.resize(size_t{16} * job.k);
    read_operand(job.a, smem, a.data(), false, job.k);
  }
  if (job.flags & kANegated)
    for (float& v : a) v = -v;
  if (job.types.d == ScalarType::s32) {
    multiply_integers(w, job, a.data(), b.data());
    return;
  }
  if (job.accumulate) read_accumulators(w, job, d.data());
  float* rows[16];
  for (uint32_t i = 0; i < 16; ++i) rows[i] = d.data() + size_t{i} * job.n;
  bool fp8 = size_bytes(job.types.a) == 1;
  AccumulationRule rule{fp8 ? 13 : 25, fp8 ? 14 : 24, job.types.a, job.types.b,
                        job.types.d == ScalarType::f16};
  multiply_hopper(16, job.n, job.k, a.data(), job.k, b.data(), job.n, rows, job.accumulate, rule);
  write_accumulators(w, job, d.data());
}

/// Operands: D registers, A registers or descriptor, B descriptor, scale-d.
Action mma_async(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  if (w.cta->warps.size() % 4)
    throw Fault(Check::wgmma, "wgmma needs whole warpgroups: the CTA's warps are no multiple of four");
  Job job;
  job.n = in.mod[0] >> 16;
  job.k = in.mod[0] & 0xffff;
  job.types = types_of(in);
  job.flags = in.mod[2];
  job.warp_row = w.index % 4;
  uint32_t d_registers = in.mod[3];
  const Operand* tail = in.ops + d_registers;
  for (uint32_t i = 0; i < d_registers; ++i) job.d_offsets.push_back(in.ops[i].offset);
  bool registers = in.mod[2] & kARegisters;
  const Operand& scale = tail[registers ? 5 : 2];
  Mask p = w.predicate(scale);
  job.accumulate = p & 1u << first_lane(mask);
  if ((p & mask) != 0 && (p & mask) != mask)
    throw Fault(Check::convergence, "scale-d differs between the lanes of a warp");
  Cluster& cluster = *w.cta->cluster;
  uint32_t op = cluster.async.add_operation("wgmma", in.line, w.cta->rank, w.index, &w.wgmma_queue);
  int lane = first_lane(mask);
  if (registers) {
    uint32_t size = static_cast<uint32_t>(size_bytes(job.types.a)), per = 4 / size;
    job.a_registers.resize(size_t{16} * job.k);
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t r = 0; r < 4; ++r) {
        float values[4];
        convert_elements(w.read(tail[r]) + 4 * l, per, job.types.a, values);
        for (uint32_t e = 0; e < per; ++e)
          job.a_registers[(l / 4 + 8 * (r & 1)) * job.k + per * (l & 3) + e + 4 * per * (r >> 1)] = values[e];
      }
  } else {
    // The warp's 16 rows of the 64: the same descriptor, elements from row 16 w on.
    job.a = {decode_wgmma_descriptor(lane_value(w, tail[0], lane), "A"),
             (in.mod[2] & kATransposed) != 0,
             16,
             job.k,
             job.types.a,
             16 * static_cast<uint32_t>(job.warp_row)};
    if (w.cta->cluster->launch->check_races)
      for_units(job.a, [&](uint32_t address, uint32_t, uint32_t) {
        if (address + 16 <= w.cta->smem.size()) note_async_read(w, lane, *w.cta, address, 16, op);
      });
  }
  job.b = {decode_wgmma_descriptor(lane_value(w, tail[registers ? 4 : 1], lane), "B"),
           (in.mod[2] & kBTransposed) != 0,
           job.n,
           job.k,
           job.types.b,
           0};
  if (w.cta->cluster->launch->check_races && job.warp_row == 0)
    for_units(job.b, [&](uint32_t address, uint32_t, uint32_t) {
      if (address + 16 <= w.cta->smem.size()) note_async_read(w, lane, *w.cta, address, 16, op);
    });
  uint64_t sequence = w.wgmma_queue.issued;
  if (w.wgmma_starts.empty() || (!w.wgmma_groups.empty() && w.wgmma_groups.back() == sequence - 1)) {
    w.wgmma_starts.emplace_back(sequence, w.release());
    if (w.wgmma_starts.size() > kStartsKept) w.wgmma_starts.pop_front();
  }
  for (uint32_t i = 0; i < d_registers; ++i) w.add_pending({in.ops[i].offset, 128, in.line, false, sequence});
  auto describe = [n = job.n, k = job.k] { return fmt::format("MMA 64x{}x{}", n, k); };
  submit_traced(w, &w.wgmma_queue, describe, [&w, job = std::move(job), sequence] {
    run(w, job, sequence);
    w.wgmma_queue.completed = sequence;
    for_warpgroup(w, [](Warp& other) { ++other.async_version; });
  });
  return Action::next;
}

Action commit_group(Warp& w, Fragment& f, const Instr&, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  w.wgmma_groups.push_back(w.wgmma_queue.issued);
  return Action::next;
}

/// mod[0]: groups that may stay open.
Action wait_group(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  if (w.wgmma_groups.size() <= in.mod[0]) return Action::next;
  uint64_t need = w.wgmma_groups[w.wgmma_groups.size() - 1 - in.mod[0]];
  bool complete = true;
  for_warpgroup(w, [&](Warp& other) { complete &= other.wgmma_queue.completed >= need || !other.live; });
  if (!complete) {
    f.wait_on(&w.async_version);
    f.describe_wait = [] { return std::string("waits for the wgmma groups of its warpgroup"); };
    return Action::wait;
  }
  for_warpgroup(w, [&](Warp& other) {
    other.wgmma_queue.observed = std::max(other.wgmma_queue.observed, need);
    other.wgmma_queue.tell(need, w.now());
    // A wgmma is one operation of four warps: complete for one, it has been issued by all, with what each had
    // waited for before. CUTLASS builds on that too: one thread gives a stage back for its warpgroup.
    for (const auto& [sequence, clock] : other.wgmma_starts)
      if (sequence <= need) w.clock.join(clock);
  });
  w.erase_pending([&](const PendingRegisters& p) { return !p.is_tcgen05 && p.sequence <= need; });
  while (w.wgmma_groups.size() > in.mod[0]) w.wgmma_groups.pop_front();
  return Action::next;
}

/// Orders register accesses before the first wgmma; nothing to do here but to be converged.
Action fence(Warp& w, Fragment& f, const Instr&, Mask mask) {
  return aligned(w, f, mask) ? Action::next : Action::wait;
}

bool parse_shape(std::string_view q, uint32_t* n, uint32_t* k) {
  if (q.substr(0, 4) != "m64n") return false;
  size_t at = q.find('k');
  if (at == std::string_view::npos) return false;
  *n = *k = 0;
  for (char c : q.substr(4, at - 4)) *n = *n * 10 + static_cast<uint32_t>(c - '0');
  for (char c : q.substr(at + 1)) *k = *k * 10 + static_cast<uint32_t>(c - '0');
  return true;
}

void decode_mma_async(Decode& d) {
  uint32_t n = 0, k = 0;
  bool shaped = false;
  for (std::string_view q : d.in().qualifiers)
    if (parse_shape(q, &n, &k)) {
      d.take(q);
      shaped = true;
    }
  if (!shaped) d.fail("missing shape");
  if (d.take("sp")) d.fail("sparse wgmma is not supported");
  bool satfinite = d.take("satfinite");
  if (satfinite) d.fail("wgmma.satfinite is not supported");
  ScalarType td = d.need_type(), ta = d.need_type(), tb = d.need_type();
  uint32_t size = static_cast<uint32_t>(size_bytes(ta));
  bool half = ta == ScalarType::f16 || ta == ScalarType::bf16,
       fp8 = ta == ScalarType::e4m3 || ta == ScalarType::e5m2;
  bool is_integer = is_integer_element(ta);
  if (!half && !fp8 && !is_integer && ta != ScalarType::tf32) d.fail("this wgmma type is not supported");
  if (k * size != 32) d.fail("K does not fit the element type");
  if ((half || ta == ScalarType::tf32) && ta != tb) d.fail("A and B must have the same type");
  if (is_integer != is_integer_element(tb) || size_bytes(tb) != size_bytes(ta))
    d.fail("types of A and B do not fit");
  bool ok = td == ScalarType::f32   ? !is_integer
            : td == ScalarType::s32 ? is_integer
                                    : td == ScalarType::f16 && (ta == ScalarType::f16 || fp8);
  if (!ok) d.fail("this wgmma result type is not supported");
  if (n < 8 || n > 256 || n % 8 || (is_integer && n > 32 && n % 16)) d.fail("N is not legal");
  size_t d_registers = td == ScalarType::f16 ? n / 4 : n / 2;
  auto parts = Decode::parts(d.parsed(0));
  if (parts.size() != d_registers) d.fail("wrong number of accumulator registers");
  for (const ParsedOperand* p : parts) d.dst(*p, 4, false);
  uint32_t flags = 0;
  if (d.parsed(1).kind == ParsedOperand::Kind::vector) {
    flags |= kARegisters;
    if (d.parsed(1).parts.size() != 4) d.fail("A has four registers");
    for (const ParsedOperand& p : d.parsed(1).parts) d.src(p, 4);
  } else {
    d.src(d.parsed(1), 8);
  }
  d.src(d.parsed(2), 8);
  d.src(d.parsed(3), 0);
  size_t tail = is_integer ? 0 : half ? (flags & kARegisters ? 3 : 4) : 2;
  d.need_count(4 + tail, 4 + tail);
  if (tail >= 2) {
    int64_t sa = d.immediate(d.parsed(4)), sb = d.immediate(d.parsed(5));
    if ((sa != 1 && sa != -1) || (sb != 1 && sb != -1)) d.fail("imm-scale must be 1 or -1");
    if (sa < 0) flags |= kANegated;
    if (sb < 0) flags |= kBNegated;
  }
  if (tail == 4 && d.immediate(d.parsed(6))) flags |= kATransposed;
  if (tail >= 3 && d.immediate(d.parsed(3 + tail))) flags |= kBTransposed;
  d.out.mod[0] = n << 16 | k;
  d.out.mod[1] = static_cast<uint32_t>(ta) | static_cast<uint32_t>(tb) << 8 | static_cast<uint32_t>(td) << 16;
  d.out.mod[2] = flags;
  d.out.mod[3] = static_cast<uint32_t>(d_registers);
  d.out.mod[4] = kWgmmaMark;
  d.out.run = mma_async;
}

void decode_wgmma(Decode& d) {
  if (!d.module.program().has_target("sm_90a")) d.fail("wgmma exists on sm_90a only");
  int what = d.need_one_of({"mma_async", "fence", "commit_group", "wait_group"});
  d.need_one_of({"sync"});
  d.need_one_of({"aligned"});
  switch (what) {
    case 0:
      decode_mma_async(d);
      return;
    case 1:
      d.out.run = fence;
      break;
    case 2:
      d.out.run = commit_group;
      break;
    default:
      d.need_count(1, 1);
      d.out.mod[0] = static_cast<uint32_t>(d.immediate(d.parsed(0)));
      d.out.run = wait_group;
      return;
  }
  d.need_count(0, 0);
}

}  // namespace

void register_wgmma(OpcodeTable& t) { t["wgmma"] = decode_wgmma; }

}  // namespace gemmtune::emulator
