// tcgen05.ld, st and cp: tensor memory to and from registers, shared memory to tensor memory
// (ptx-facts 4.5, 4.6).
#include <fmt/format.h>

#include "emulator/matrix.h"
#include "emulator/tcgen05.h"

namespace gemmtune::emulator {
namespace {

enum Shape : uint32_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

struct Cell {
  uint32_t row, column;
};

/// Where register i of lane t lies, relative to the instruction's address; `split` is the offset of 16x32bx2.
Cell cell_of(uint32_t shape, uint32_t t, uint32_t i, uint32_t split) {
  switch (shape) {
    case k32x32b:
      return {t, i};
    case k16x64b:
      return {t / 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * i};
    case k16x128b:
      return {t / 4 + 8 * (i & 1), (t & 3) + 4 * (i >> 1)};
    case k16x256b:
      return {t / 4 + 8 * (i >> 1 & 1), (i & 1) + 2 * (t & 3) + 8 * (i >> 2)};
    default:
      return {t & 15, t < 16 ? i : i + split};
  }
}

/// Columns of 32 bits that a shape covers for n registers.
uint32_t columns_of(uint32_t shape, uint32_t registers) {
  switch (shape) {
    case k32x32b:
    case k16x32bx2:
      return registers;
    case k16x64b:
      return 2 * registers;
    case k16x128b:
      return 2 * registers;
    default:
      return 2 * registers;
  }
}

// mod: [0] shape, [1] registers, [2] packed 16 bits, [3] split. Operands: address first, then registers.
struct Access {
  uint32_t lane, column, columns;
};

Access check_access(Warp& w, const Instr& in, Mask mask, const char* what) {
  uint32_t address = static_cast<uint32_t>(lane_address(w, in.ops[0], first_lane(mask)));
  for (Mask m = mask; m; m &= m - 1)
    if (static_cast<uint32_t>(lane_address(w, in.ops[0], first_lane(m))) != address)
      throw Fault(Check::tmem, fmt::format("the address of {} differs between lanes", what));
  uint32_t lane = tmem_lane(address);
  // learn-cuda's 2-CTA kernels add 128 lanes for the odd CTA and run on B200: the bits above lane 127 are
  // ignored.
  if (lane >= kTmemLanes) {
    if (!w.cta->cluster->lane_warned)
      report_here(w, Severity::warning, Check::tmem,
                  fmt::format("address {:#x}: lane {} is beyond 127", address, lane));
    w.cta->cluster->lane_warned = true;
    lane %= kTmemLanes;
  }
  uint32_t quarter = static_cast<uint32_t>(w.index) % 4;
  bool ok = lane == 32 * quarter || (in.mod[0] != k32x32b && lane == 32 * quarter + 16);
  if (!ok)
    throw Fault(Check::tmem, fmt::format("{} at lane {}: warp {} may only touch lanes {} to {}", what, lane,
                                         w.index, 32 * quarter, 32 * quarter + 31));
  uint32_t columns = columns_of(in.mod[0], in.mod[1]) * (in.mod[2] ? 2 : 1);
  check_columns(*w.cta, tmem_column(address), columns);
  if (in.mod[0] == k16x32bx2) check_columns(*w.cta, tmem_column(address) + in.mod[3], columns);
  return {lane, tmem_column(address), columns};
}

/// Columns the access touches, the second half of 16x32bx2 included.
template <class F>
void for_columns(const Instr& in, const Access& a, F visit) {
  for (uint32_t c = a.column; c < a.column + a.columns; ++c) visit(c);
  if (in.mod[0] == k16x32bx2)
    for (uint32_t c = a.column + in.mod[3]; c < a.column + in.mod[3] + a.columns; ++c) visit(c);
}

Action load(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  Access a = check_access(w, in, mask, "tcgen05.ld");
  Cluster& cluster = *w.cta->cluster;
  Tmem& tmem = w.cta->tmem;
  uint32_t quarter = static_cast<uint32_t>(w.index) % 4;
  uint32_t lanes = in.mod[0] == k32x32b ? ~0u : a.lane % 32 ? 0xffff0000u : 0xffffu;
  for_columns(in, a, [&](uint32_t c) {
    Tmem::Cell& cell = tmem.cell(quarter, c);
    if (cluster.launch->check_races) {
      if (!knows(w, cell.writer))
        report_here(w, Severity::race, Check::tmem,
                    fmt::format("reads column {} before the {} at line {} is known to be complete: nobody "
                                "waited for a commit "
                                "that covers it",
                                c, cluster.async.operation(cell.writer).what,
                                cluster.async.operation(cell.writer).line));
      if (cell.writer) {
        // CUTLASS leaves the fence out in places and runs, so this is no more than a warning (ptx-facts
        // section 5).
        const OperationRecord& writer = cluster.async.operation(cell.writer);
        if (writer.is_observed() && writer.queue &&
            w.last_after_fence < writer.queue->observed_tick(writer.sequence))
          report_here(w, Severity::warning, Check::tmem,
                      fmt::format("reads column {} without tcgen05.fence::after_thread_sync behind the wait "
                                  "for the {} at line {}",
                                  c, writer.what, writer.line));
      }
      if (cell.handed) check_hand_over(w, *w.cta, c, tmem.stored(quarter, c), "tcgen05.st");
      if ((cell.initialised & lanes) != lanes)
        report_here(w, Severity::race, Check::tmem,
                    fmt::format("reads column {}, which was never written since its allocation", c));
      if (cell.store_pending)
        report_here(
            w, Severity::race, Check::tmem,
            fmt::format(
                "reads column {} while the tcgen05.st at line {} is pending: tcgen05.wait::st is missing", c,
                cell.store_pending));
    }
    cell.loads_pending = static_cast<uint32_t>(in.line);
  });
  w.touched_by_loads.emplace_back(a.column, a.columns);
  if (in.mod[0] == k16x32bx2) w.touched_by_loads.emplace_back(a.column + in.mod[3], a.columns);
  uint64_t sequence = ++w.tmem_loads.issued;
  for (uint32_t i = 0; i < in.mod[1]; ++i) {
    const Operand& op = in.ops[1 + i];
    if (op.kind == Operand::Kind::none) continue;
    w.add_pending({op.offset, 128, in.line, true, sequence});
    std::memset(dst_of(w, op), 0xff, 128);  // until it has run, the registers hold nonsense
  }
  auto describe = [&] { return fmt::format("TMEM load of {} columns from {}", a.columns, a.column); };
  submit_traced(w, &w.tmem_loads, describe, [&w, &in, a, sequence] {
    Tmem& t = w.cta->tmem;
    for (uint32_t i = 0; i < in.mod[1]; ++i) {
      const Operand& op = in.ops[1 + i];
      if (op.kind == Operand::Kind::none) continue;
      uint32_t* d = reinterpret_cast<uint32_t*>(dst_of(w, op));
      for (uint32_t l = 0; l < 32; ++l) {
        Cell c = cell_of(in.mod[0], l, i, in.mod[3]);
        uint32_t lane = a.lane + c.row;
        if (in.mod[2]) {
          uint32_t column = a.column + 2 * c.column;
          d[l] = (*t.word(lane, column) & 0xffff) | *t.word(lane, column + 1) << 16;
        } else {
          d[l] = *t.word(lane, a.column + c.column);
        }
      }
    }
    w.tmem_loads.completed = sequence;
    ++w.async_version;
  });
  return Action::next;
}

Action store(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  Access a = check_access(w, in, mask, "tcgen05.st");
  Cluster& cluster = *w.cta->cluster;
  Tmem& tmem = w.cta->tmem;
  uint32_t quarter = static_cast<uint32_t>(w.index) % 4;
  uint32_t lanes = in.mod[0] == k32x32b ? ~0u : a.lane % 32 ? 0xffff0000u : 0xffffu;
  for_columns(in, a, [&](uint32_t c) {
    Tmem::Cell& cell = tmem.cell(quarter, c);
    if (cluster.launch->check_races && !knows(w, cell.writer))
      report_here(
          w, Severity::race, Check::tmem,
          fmt::format("writes column {} before the {} at line {} is known to be complete", c,
                      cluster.async.operation(cell.writer).what, cluster.async.operation(cell.writer).line));
    cell.initialised |= lanes;
    cell.store_pending = static_cast<uint32_t>(in.line);
    cell.writer = 0;
  });
  w.touched_by_stores.emplace_back(a.column, a.columns);
  if (in.mod[0] == k16x32bx2) w.touched_by_stores.emplace_back(a.column + in.mod[3], a.columns);
  std::vector<uint32_t> values(size_t{in.mod[1]} * 32);
  for (uint32_t i = 0; i < in.mod[1]; ++i)
    for (int l = 0; l < 32; ++l)
      values[i * 32 + static_cast<uint32_t>(l)] = get<uint32_t>(w.read(in.ops[1 + i]), l);
  uint64_t sequence = ++w.tmem_stores.issued;
  auto describe = [&] { return fmt::format("TMEM store of {} columns to {}", a.columns, a.column); };
  submit_traced(w, &w.tmem_stores, describe, [&w, &in, a, sequence, values = std::move(values)] {
    Tmem& t = w.cta->tmem;
    for (uint32_t i = 0; i < in.mod[1]; ++i)
      for (uint32_t l = 0; l < 32; ++l) {
        Cell c = cell_of(in.mod[0], l, i, in.mod[3]);
        uint32_t lane = a.lane + c.row, v = values[i * 32 + l];
        if (in.mod[2]) {
          uint32_t column = a.column + 2 * c.column;
          *t.word(lane, column) = v & 0xffff;
          *t.word(lane, column + 1) = v >> 16;
        } else {
          *t.word(lane, a.column + c.column) = v;
        }
      }
    w.tmem_stores.completed = sequence;
    ++w.async_version;
  });
  return Action::next;
}

// --- cp ---

enum CopyShape : uint32_t { k128x256b, k4x256b, k128x128b, k64x128b, k32x128b };

/// mod: [0] cta_group, [1] shape, [2] 64x128b: 0 for 02_13, 1 for 01_23. Operands: address, descriptor.
Action copy(Warp& w, Fragment&, const Instr& in, Mask mask) {
  if (std::popcount(mask) != 1) throw Fault(Check::convergence, "tcgen05.cp must be issued by one thread");
  int lane = first_lane(mask);
  std::vector<Cta*> ctas = tcgen05_ctas(w, in.mod[0]);
  if (in.mod[0] == 2 && (w.cta->rank & 1))
    throw Fault(Check::illegal_instruction, "cta_group::2 copy issued by the odd CTA");
  uint32_t address = static_cast<uint32_t>(lane_address(w, in.ops[0], lane));
  MatrixDescriptor descriptor = decode_tcgen05_descriptor(lane_value(w, in.ops[1], lane), "the copy");
  static constexpr uint32_t kRows[] = {128, 4, 128, 64, 32};
  uint32_t rows = kRows[in.mod[1]], units = in.mod[1] <= k4x256b ? 2 : 1;
  uint32_t column = tmem_column(address), columns = 4 * units;
  // Rows walk like a K-major operand of 16-byte units (ptx-facts 4.6).
  MatrixOperand source{descriptor, false, rows, 16 * units, ScalarType::u8, 0};
  uint32_t operation = w.cta->cluster->async.add_operation("tcgen05.cp", in.line, w.cta->rank, w.index,
                                                           &tensor_queue(w, lane));
  for (Cta* cta : ctas) {
    check_columns(*cta, column, columns);
    for_units(source, [&](uint32_t at, uint32_t, uint32_t) {
      if (at < kSharedBase || at + 16 > cta->smem.size())
        throw Fault(Check::out_of_bounds, fmt::format("tcgen05.cp reads shared offset {:#x}", at));
      note_async_read(w, lane, *cta, at, 16, operation);
    });
    for (uint32_t quarter = 0; quarter < 4; ++quarter)
      for (uint32_t c = column; c < column + columns; ++c) {
        Tmem::Cell& cell = cta->tmem.cell(quarter, c);
        cell.initialised |= in.mod[1] == k4x256b ? 1u : ~0u;
        cell.writer = operation;
      }
  }
  InOrder& queue = tensor_queue(w, lane);
  uint32_t shape = in.mod[1], split = in.mod[2];
  submit(w, &queue, [ctas, source, column, shape, split, &queue] {
    for (Cta* cta : ctas)
      for_units(source, [&](uint32_t at, uint32_t r, uint32_t byte) {
        uint32_t lanes[4], n = 0;
        switch (shape) {
          case k128x256b:
          case k128x128b:
            lanes[n++] = r;
            break;
          case k4x256b:
            lanes[n++] = 32 * r;
            break;
          case k32x128b:
            for (uint32_t q = 0; q < 4; ++q) lanes[n++] = r + 32 * q;
            break;
          default:
            if (split == 0) {
              lanes[n++] = r;
              lanes[n++] = r + 64;
            } else {
              uint32_t base = r < 32 ? r : r + 32;
              lanes[n++] = base;
              lanes[n++] = base + 32;
            }
        }
        for (uint32_t i = 0; i < n; ++i)
          std::memcpy(cta->tmem.word(lanes[i], column + byte / 4), cta->smem.data() + at, 16);
      });
    ++queue.completed;
  });
  return Action::next;
}

}  // namespace

void decode_tcgen05_load_store(Decode& d, bool is_load) {
  if (d.has("red")) d.fail("tcgen05.ld.red is not supported");
  d.need_one_of({"sync"});
  d.need_one_of({"aligned"});
  uint32_t shape =
      static_cast<uint32_t>(d.need_one_of({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"}));
  int log2 = d.need_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  uint32_t repeat = 1u << log2;
  static constexpr uint32_t kRegisters[] = {1, 1, 2, 4, 1};
  uint32_t registers = repeat * kRegisters[shape];
  if (registers > 128) d.fail("repetition is too large for the shape");
  d.out.mod[2] = d.take(is_load ? "pack::16b" : "unpack::16b");
  d.need_type();
  size_t n = shape == k16x32bx2 ? 3 : 2;
  d.need_count(n, n);
  d.address(d.parsed(is_load ? 1 : 0));
  if (shape == k16x32bx2) d.out.mod[3] = static_cast<uint32_t>(d.immediate(d.parsed(is_load ? 2 : 1)));
  auto parts = Decode::parts(d.parsed(is_load ? 0 : n - 1));
  if (parts.size() != registers) d.fail("wrong number of registers for the shape");
  for (const ParsedOperand* p : parts) {
    if (is_load)
      d.dst(*p, 4);
    else
      d.src(*p, 4);
  }
  d.out.mod[0] = shape;
  d.out.mod[1] = registers;
  d.out.run = is_load ? load : store;
}

void decode_tcgen05_cp(Decode& d) {
  d.out.mod[0] = take_cta_group(d);
  d.out.mod[1] =
      static_cast<uint32_t>(d.need_one_of({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"}));
  if (d.out.mod[1] == k64x128b)
    d.out.mod[2] = static_cast<uint32_t>(d.need_one_of({"warpx2::02_13", "warpx2::01_23"}));
  if (d.out.mod[1] == k32x128b) d.need_one_of({"warpx4"});
  if (d.has("b8x16.b6x16_p32") || d.has("b8x16")) d.fail("decompressing tcgen05.cp is not supported");
  d.need_count(2, 2);
  d.address(d.parsed(0));
  d.src(d.parsed(1), 8);
  d.out.run = copy;
}

}  // namespace gemmtune::emulator
