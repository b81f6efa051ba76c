// tcgen05.mma, kinds f16, tf32, f8f6f4 and i8 (ptx-facts 1.6, 4.3, 4.4, 6.1).
#include <fmt/format.h>

#include <cmath>

#include "emulator/instruction_descriptor.h"
#include "emulator/matrix.h"
#include "emulator/numeric.h"
#include "emulator/tcgen05.h"

namespace gemmtune::emulator {
namespace {

// mod: [0] cta_group, [1] kind, [2] flags, [3] scale-d, [4] words of the lane mask.
constexpr uint32_t kATmem = 1, kHasMask = 2;

/// One CTA's share of the multiply.
struct Share {
  Cta* cta;
  MatrixOperand a;
};

struct Job {
  InstructionDescriptor shape;
  std::vector<Share> shares;
  std::vector<std::pair<Cta*, MatrixOperand>> b;  ///< parts of B in order of N
  bool a_in_tmem = false;
  uint32_t a_column = 0, a_lane = 0;
  uint32_t d_column = 0, d_lane = 0;
  uint32_t rows = 0;    ///< of each CTA
  bool folded = false;  ///< cta_group::2 with M = 128: the upper half of N in lanes 64 to 127
  bool accumulate = false;
  int scale_d = 0;
  std::array<uint32_t, 8> lane_mask{};  ///< bit set: the lane is not written
};

/// Lane of accumulator row r (ptx-facts 4.3).
uint32_t lane_of(const Job& job, uint32_t r) {
  if (job.rows == 64 && !job.folded) return 32 * (r / 16) + r % 16 + job.d_lane % 32;
  return r;
}

/// A of one CTA as [row][k].
void read_a(const Job& job, size_t share, std::vector<float>& a) {
  const Share& s = job.shares[share];
  a.resize(size_t{job.rows} * job.shape.k);
  if (!job.a_in_tmem) {
    read_operand(s.a, s.cta->smem, a.data(), false, job.shape.k);
    return;
  }
  for (uint32_t r = 0; r < job.rows; ++r)  // 32 bytes a row: 8 columns, low half first
    convert_elements(reinterpret_cast<const uint8_t*>(s.cta->tmem.word(r, job.a_column)), job.shape.k,
                     job.shape.a, a.data() + size_t{r} * job.shape.k);
}

void multiply_integers(const Job& job, const float* a, const float* b, Cta& cta, size_t share) {
  const InstructionDescriptor& s = job.shape;
  for (uint32_t r = 0; r < job.rows; ++r)
    for (uint32_t n = 0; n < s.n; ++n) {
      uint32_t lane = lane_of(job, r) + (job.folded && n >= s.n / 2 ? 64 : 0);
      if (job.lane_mask[share * 4 + lane / 32] >> (lane % 32) & 1) continue;
      uint32_t* d = cta.tmem.word(lane, job.d_column + (job.folded ? n % (s.n / 2) : n));
      int64_t sum = job.accumulate ? static_cast<int32_t>(*d) : 0;
      for (uint32_t p = 0; p < s.k; ++p)
        sum += static_cast<int64_t>(a[r * s.k + p]) * static_cast<int64_t>(b[p * s.n + n]);
      if (s.saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      *d = static_cast<uint32_t>(sum);
    }
}

void run(const Job& job) {
  static thread_local std::vector<float> a, b, scratch;
  const InstructionDescriptor& s = job.shape;
  b.resize(size_t{s.k} * s.n);
  uint32_t n0 = 0;
  for (const auto& [cta, part] : job.b) {
    read_operand(part, cta->smem, b.data() + n0, true, s.n);
    n0 += part.mn;
  }
  if (s.negate_b)
    for (float& v : b) v = -v;
  bool masked = false;
  for (uint32_t word : job.lane_mask) masked |= word != 0;
  for (size_t i = 0; i < job.shares.size(); ++i) {
    Cta& cta = *job.shares[i].cta;
    read_a(job, i, a);
    if (s.negate_a)
      for (float& v : a) v = -v;
    if (s.d == ScalarType::s32) {
      multiply_integers(job, a.data(), b.data(), cta, i);
      continue;
    }
    uint32_t halves = job.folded ? 2 : 1, columns = s.n / halves;
    std::vector<float*> rows(job.rows);
    bool direct = s.d == ScalarType::f32 && !masked && job.scale_d == 0;
    scratch.resize(size_t{job.rows} * columns);
    for (uint32_t h = 0; h < halves; ++h) {
      auto lane = [&](uint32_t r) { return lane_of(job, r) + 64 * h; };
      for (uint32_t r = 0; r < job.rows; ++r) {
        uint32_t* d = cta.tmem.word(lane(r), job.d_column);
        if (direct) {
          rows[r] = reinterpret_cast<float*>(d);
          continue;
        }
        rows[r] = scratch.data() + size_t{r} * columns;
        for (uint32_t n = 0; n < columns; ++n) {
          float v = s.d == ScalarType::f16 ? static_cast<float>(decode_float(d[n] & 0xffff, ScalarType::f16))
                                           : std::bit_cast<float>(d[n]);
          rows[r][n] = std::ldexp(v, -job.scale_d);
        }
      }
      multiply_f32(job.rows, columns, s.k, a.data(), s.k, b.data() + h * columns, s.n, rows.data(),
                   job.accumulate);
      if (direct) continue;
      for (uint32_t r = 0; r < job.rows; ++r) {
        if (job.lane_mask[i * 4 + lane(r) / 32] >> (lane(r) % 32) & 1) continue;
        uint32_t* d = cta.tmem.word(lane(r), job.d_column);
        for (uint32_t n = 0; n < columns; ++n)
          d[n] = s.d == ScalarType::f16 ? encode_float(rows[r][n], ScalarType::f16)
                                        : std::bit_cast<uint32_t>(rows[r][n]);
      }
    }
  }
}

/// Checks and bookkeeping of the accumulator's columns at issue.
void note_accumulator(Warp& w, const Job& job, Cta& cta, uint32_t operation) {
  Cluster& cluster = *w.cta->cluster;
  uint32_t columns = job.folded ? job.shape.n / 2 : job.shape.n;
  check_columns(cta, job.d_column, columns);
  if (!cluster.launch->check_races) return;
  const InOrder* queue = cluster.async.operation(operation).queue;
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    uint32_t lanes = job.rows == 64 && !job.folded ? 0xffffu << (job.d_lane % 32) : ~0u;
    for (uint32_t c = job.d_column; c < job.d_column + columns; ++c) {
      Tmem::Cell& cell = cta.tmem.cell(quarter, c);
      if (job.accumulate && (cell.initialised & lanes) != lanes)
        report_here(w, Severity::race, Check::tmem,
                    fmt::format("accumulates onto column {} of CTA rank {}, lanes from {}, which nothing has "
                                "written since its "
                                "allocation",
                                c, cta.rank, 32 * quarter));
      if (cell.loads_pending)
        report_here(
            w, Severity::race, Check::tmem,
            fmt::format("writes column {} of CTA rank {} while the tcgen05.ld at line {} still reads it: "
                        "tcgen05.wait::ld is missing before the hand-over",
                        c, cta.rank, cell.loads_pending));
      if (cell.store_pending)
        report_here(
            w, Severity::race, Check::tmem,
            fmt::format("column {} of CTA rank {} has a tcgen05.st at line {} without tcgen05.wait::st", c,
                        cta.rank, cell.store_pending));
      if (cell.writer) {
        const OperationRecord& other = cluster.async.operation(cell.writer);
        if (other.queue != queue && !knows(w, cell.writer))
          report_here(w, Severity::race, Check::tmem,
                      fmt::format("writes column {} of CTA rank {}, which the {} at line {} of another "
                                  "thread may still write",
                                  c, cta.rank, other.what, other.line));
      }
      if (cell.handed) {
        check_hand_over(w, cta, c, cta.tmem.read(quarter, c), "tcgen05.ld");
        check_hand_over(w, cta, c, cta.tmem.stored(quarter, c), "tcgen05.st");
        cta.tmem.read(quarter, c) = cta.tmem.stored(quarter, c) = {};
        cell.handed = false;
      }
      cell.initialised |= lanes;
      cell.writer = operation;
    }
  }
}

void note_operand(Warp& w, int lane, Cta& cta, const MatrixOperand& o, uint32_t operation, const char* name) {
  uint32_t limit = static_cast<uint32_t>(cta.smem.size());
  bool races = w.cta->cluster->launch->check_races;
  for_units(o, [&](uint32_t address, uint32_t mn, uint32_t k) {
    if (address < kSharedBase || address + 16 > limit)
      throw Fault(Check::out_of_bounds, fmt::format("operand {} element ({}, {}) at shared offset {:#x} of "
                                                    "CTA rank {} lies outside [{:#x}, {:#x}); "
                                                    "start {:#x}, LBO {}, SBO {}",
                                                    name, mn, k, address, cta.rank, kSharedBase, limit,
                                                    o.descriptor.start, o.descriptor.lbo, o.descriptor.sbo));
    if (races) note_async_read(w, lane, cta, address, 16, operation);
  });
}

void check_operand(const MatrixOperand& o, const char* name) {
  TensorSwizzle swizzle = o.descriptor.swizzle;
  bool atom32 = swizzle == TensorSwizzle::b128_atom32;
  // 32-byte atoms go with MN-major tf32 only (ptx-facts 2.2, 2.5; CUTLASS #2728).
  if (atom32 && !(o.mn_major && o.type == ScalarType::tf32))
    throw Fault(Check::matrix_descriptor,
                fmt::format("descriptor of {}: layout 1 (128B with 32B atoms) needs an MN-major "
                            "tf32 operand; 128B swizzle is layout 2",
                            name));
  if (!atom32 && o.mn_major && o.type == ScalarType::tf32)
    throw Fault(Check::matrix_descriptor,
                fmt::format("descriptor of {}: an MN-major tf32 operand needs layout 1", name));
}

Action mma(Warp& w, Fragment&, const Instr& in, Mask mask) {
  if (std::popcount(mask) != 1)
    throw Fault(Check::convergence,
                fmt::format("tcgen05.mma is issued by {} lanes, must be one thread", std::popcount(mask)));
  int lane = first_lane(mask);
  uint32_t group = in.mod[0];
  if (group == 2 && (w.cta->rank & 1))
    throw Fault(Check::illegal_instruction,
                "cta_group::2 multiply issued by the odd CTA of the pair; the even one leads");
  std::vector<Cta*> ctas = tcgen05_ctas(w, group);
  Job job;
  job.a_in_tmem = in.mod[2] & kATmem;
  const Operand* tail = in.ops + 4;
  std::string warning;
  MmaKind kind = static_cast<MmaKind>(in.mod[1]);
  job.shape = decode_instruction_descriptor(static_cast<uint32_t>(lane_value(w, in.ops[3], lane)), kind,
                                            group, job.a_in_tmem, &warning);
  if (!warning.empty()) report_here(w, Severity::warning, Check::instruction_descriptor, warning);
  if (in.mod[2] & kHasMask)
    for (uint32_t i = 0; i < in.mod[4]; ++i)
      job.lane_mask[i] = static_cast<uint32_t>(lane_value(w, tail[i], lane));
  const Operand& enable = tail[in.mod[2] & kHasMask ? in.mod[4] : 0];
  job.accumulate = w.predicate(enable) >> lane & 1;
  job.scale_d = static_cast<int>(in.mod[3]);
  uint32_t d_address = static_cast<uint32_t>(lane_address(w, in.ops[0], lane));
  job.d_column = tmem_column(d_address);
  job.d_lane = tmem_lane(d_address);
  job.rows = job.shape.m / group;
  job.folded = group == 2 && job.shape.m == 128;
  bool half_lanes = job.rows == 64 && !job.folded;
  if (job.d_lane != 0 && !(half_lanes && job.d_lane == 16))
    throw Fault(Check::tmem, fmt::format("accumulator address {:#x}: lane {} is not legal for M = {}",
                                         d_address, job.d_lane, job.shape.m));

  uint32_t operation = w.cta->cluster->async.add_operation("tcgen05.mma", in.line, w.cta->rank, w.index,
                                                           &tensor_queue(w, lane));
  MatrixOperand a{{}, job.shape.a_mn_major, job.rows, job.shape.k, job.shape.a, 0};
  if (job.a_in_tmem) {
    uint32_t address = static_cast<uint32_t>(lane_address(w, in.ops[1], lane));
    job.a_column = tmem_column(address);
    job.a_lane = tmem_lane(address);
    if (job.rows != 128)
      throw Fault(Check::illegal_instruction,
                  "A in tensor memory with fewer than 128 rows a CTA: the sources disagree about its "
                  "layout, it is not supported");
    if (job.a_lane) throw Fault(Check::tmem, fmt::format("A address {:#x}: lane must be 0", address));
    for (Cta* cta : ctas) {
      check_columns(*cta, job.a_column, 8);
      for (uint32_t quarter = 0; quarter < 4; ++quarter)
        for (uint32_t c = job.a_column; c < job.a_column + 8; ++c) {
          const Tmem::Cell& cell = cta->tmem.cell(quarter, c);
          if (cell.store_pending)
            report_here(
                w, Severity::race, Check::tmem,
                fmt::format("reads A from column {}, whose tcgen05.st at line {} has no tcgen05.wait::st", c,
                            cell.store_pending));
          check_hand_over(w, *cta, c, cta->tmem.stored(quarter, c), "tcgen05.st");
          if (cell.initialised != ~0u)
            report_here(w, Severity::race, Check::tmem,
                        fmt::format("reads A from column {}, which was not written", c));
        }
    }
  } else {
    a.descriptor = decode_tcgen05_descriptor(lane_value(w, in.ops[1], lane), "A");
    check_operand(a, "A");
  }
  MatrixOperand b{decode_tcgen05_descriptor(lane_value(w, in.ops[2], lane), "B"),
                  job.shape.b_mn_major,
                  job.shape.n / group,
                  job.shape.k,
                  job.shape.b,
                  0};
  check_operand(b, "B");
  for (Cta* cta : ctas) {
    job.shares.push_back({cta, a});
    job.b.emplace_back(cta, b);
    if (!job.a_in_tmem) note_operand(w, lane, *cta, a, operation, "A");
    note_operand(w, lane, *cta, b, operation, "B");
    note_accumulator(w, job, *cta, operation);
  }
  InOrder& queue = tensor_queue(w, lane);
  std::string what =
      tracing(w) ? fmt::format("MMA {}x{}x{}", job.shape.m, job.shape.n, job.shape.k) : std::string();
  submit_traced(
      w, &queue, [&] { return what; },
      [job = std::move(job), &queue] {
        run(job);
        ++queue.completed;
      });
  return Action::next;
}

}  // namespace

void decode_tcgen05_mma(Decode& d) {
  if (d.has("ws") || d.has("sp")) d.fail("tcgen05.mma.ws and .sp are not supported");
  if (d.has("block_scale") || d.has("kind::mxf8f6f4") || d.has("kind::mxf4") || d.has("kind::mxf4nvf4"))
    d.fail("block-scaled kinds of tcgen05.mma are not supported yet");
  d.out.mod[0] = take_cta_group(d);
  d.out.mod[1] =
      static_cast<uint32_t>(d.need_one_of({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8"}));
  if (d.out.mod[1] == 3 && !d.module.program().has_target("sm_100a"))
    d.fail("kind::i8 exists on sm_100a only");
  // The collector buffer only saves reads of A.
  d.drop({"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"});
  uint32_t flags = 0;
  d.need_count(5, 7);
  const ParsedOperand& a = d.parsed(1);
  d.address(d.parsed(0));
  if (a.kind == ParsedOperand::Kind::address) {
    flags |= kATmem;
    d.address(a);
  } else {
    d.src(a, 8);
  }
  d.src(d.parsed(2), 8);
  d.src(d.parsed(3), 4);
  size_t at = 4;
  if (d.parsed(at).kind == ParsedOperand::Kind::vector) {
    flags |= kHasMask;
    auto parts = Decode::parts(d.parsed(at++));
    if (parts.size() != (d.out.mod[0] == 1 ? 4u : 8u)) d.fail("wrong number of lane-mask words");
    for (const ParsedOperand* p : parts) d.src(*p, 4);
    d.out.mod[4] = static_cast<uint32_t>(parts.size());
  }
  d.src(d.parsed(at++), 0);
  if (at < d.count()) {
    int64_t scale = d.immediate(d.parsed(at++));
    if (scale < 0 || scale > 15) d.fail("scale-d is not 0 to 15");
    if (d.out.mod[1] > 1) d.fail("scale-d is for kinds f16 and tf32");
    d.out.mod[3] = static_cast<uint32_t>(scale);
  }
  if (at != d.count()) d.fail("wrong number of operands");
  d.out.mod[2] = flags;
  d.out.run = mma;
}

}  // namespace gemmtune::emulator
