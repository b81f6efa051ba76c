// Tensor copies and bulk groups; what they share with other bulk copies (ptx-facts 1.3).
#include "emulator/exec_bulk.h"

#include <fmt/format.h>

namespace gemmtune::emulator {

void check_bulk_at_exit(Warp& w, Mask lanes) {
  for (Mask m = lanes; m; m &= m - 1) {
    int lane = first_lane(m);
    const ThreadGroups& g = w.bulk_groups[lane];
    if (!g.open.empty())
      report_here(w, Severity::race, Check::smem_race,
                  "a thread exits with bulk stores that it never committed to a group");
    // DeepGEMM's kernels do this and run; PTX wants the wait (ptx-facts section 5).
    else if (!g.committed.empty())
      report_here(w, Severity::warning, Check::smem_race,
                  "a thread exits without cp.async.bulk.wait_group for its bulk stores");
  }
}

TensorMap map_at(Warp& w, int lane, uint64_t address) {
  if (address % 64)
    throw Fault(Check::misaligned, fmt::format("tensor map at {:#x} is not aligned to 64 bytes", address));
  TensorMap map;
  if (address >> kWindowShift == kGlobalBase >> kWindowShift) check_tensor_map_read(w, address);
  std::string why = decode_tensor_map(generic_place(w, lane, address, 128, false), map);
  if (!why.empty()) throw Fault(Check::tensor_map, why);
  return map;
}

std::vector<Target> targets_of(Warp& w, const SharedPlace& dst, const SharedPlace& bar, bool multicast,
                               uint32_t ctas, bool pair) {
  Cluster& cluster = *w.cta->cluster;
  std::vector<Target> targets;
  if (!multicast) {
    if (!pair) {
      // Hardware signals the destination's CTA whatever rank the barrier's address has (measured).
      if (bar.cta != dst.cta)
        report_here(
            w, Severity::race, Check::mbarrier,
            fmt::format(
                "the barrier lies in CTA rank {}, the destination in rank {}; without .cta_group::2 the "
                "signal goes to the destination's CTA",
                bar.cta->rank, dst.cta->rank));
      targets.push_back({dst.cta, dst.cta});
    } else {
      if (bar.cta->rank >> 1 != dst.cta->rank >> 1)
        throw Fault(Check::mbarrier,
                    fmt::format("barrier in CTA rank {}, destination in rank {}: not a CTA pair",
                                bar.cta->rank, dst.cta->rank));
      targets.push_back({dst.cta, bar.cta});
    }
    return targets;
  }
  if (ctas == 0 || ctas >> cluster.ctas.size())
    throw Fault(Check::illegal_instruction,
                fmt::format("cta mask {:#x} in a cluster of {}", ctas, cluster.ctas.size()));
  for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank)
    if (ctas >> rank & 1) {
      uint32_t to = pair ? (rank & ~1u) | (bar.cta->rank & 1) : rank;
      if (to >= cluster.ctas.size())
        throw Fault(Check::illegal_instruction, "the cluster has no complete CTA pair");
      targets.push_back({cluster.ctas[rank].get(), cluster.ctas[to].get()});
    }
  return targets;
}

void check_target(const Target& t, uint32_t offset, uint32_t bytes) {
  if (offset < kSharedBase || offset + uint64_t{bytes} > t.cta->smem.size())
    throw Fault(Check::out_of_bounds,
                fmt::format("{} bytes at shared offset {:#x} lie outside [{:#x}, {:#x})", bytes, offset,
                            kSharedBase, t.cta->smem.size()));
  if (t.cta->exited)
    throw Fault(Check::peer_exit, fmt::format("the copy goes to CTA rank {}, which has exited", t.cta->rank));
}

void submit_store(Warp& w, int lane, uint32_t op, const std::string& what, std::function<void()> read,
                  std::function<void()> write) {
  auto copy = std::make_shared<ThreadGroups::Copy>();
  copy->operation = op;
  w.bulk_groups[lane].open.push_back(copy);
  auto describe_read = [&] { return fmt::format("{}: read", what); };
  auto describe_write = [&] { return fmt::format("{}: write", what); };
  submit_traced(w, copy.get(), describe_read, [&w, copy, read] {
    read();
    copy->read = true;
    ++w.async_version;
  });
  submit_traced(w, copy.get(), describe_write, [&w, copy, write] {
    write();
    copy->written = true;
    ++w.async_version;
  });
}

namespace {

std::array<int32_t, 5> coordinates(Warp& w, const Instr& in, int first, int lane) {
  std::array<int32_t, 5> c{};
  for (uint32_t i = 0; i < in.mod[0]; ++i)
    c[i] = static_cast<int32_t>(lane_value(w, in.ops[first + static_cast<int>(i)], lane));
  return c;
}

/// mod: [0] rank, [1] multicast, [2] cta_group (0 none), [3] own shared only.
/// Operands: dst, map, coordinates, mbar, cta mask.
Action tensor_load(Warp& w, Fragment&, const Instr& in, Mask mask) {
  int rank = static_cast<int>(in.mod[0]);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    Cluster& cluster = *w.cta->cluster;
    SharedPlace dst = shared_cta(w, lane_address(w, in.ops[0], lane), in.mod[3]);
    TensorMap map = map_at(w, lane, lane_address(w, in.ops[1], lane));
    if (map.rank != in.mod[0])
      throw Fault(Check::tensor_map,
                  fmt::format("rank {} of the map differs from the instruction's {}", map.rank, rank));
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[2 + rank], lane), false);
    uint32_t ctas = in.mod[1] ? static_cast<uint32_t>(lane_value(w, in.ops[3 + rank], lane)) & 0xffff : 0;
    if (dst.offset % 128)
      throw Fault(
          Check::misaligned,
          fmt::format("shared address {:#x} of a tensor copy is not aligned to 128 bytes", dst.offset));
    auto box = std::make_shared<TensorBox>(make_box(map, coordinates(w, in, 2, lane), false));
    for (uint32_t row = 0; row < box->rows; ++row) {
      BoxRow r = box_row(*box, row);
      uint64_t bits = static_cast<uint64_t>(element_bits(map.type));
      check_async_global_read(w, lane, r.address + r.first * bits / 8, (r.count * bits + 7) / 8, "TMA load");
    }
    std::vector<Target> targets = targets_of(w, dst, bar, in.mod[1], ctas, in.mod[2] == 2);
    uint32_t op = cluster.async.add_operation("TMA load", in.line, w.cta->rank, w.index, nullptr);
    for (const Target& t : targets) {
      check_target(t, dst.offset, box->smem_bytes);
      mbarrier_for(w, *t.barrier_cta, bar.offset);
      note_async_write(w, *t.cta, dst.offset, box->smem_bytes, op);
    }
    auto describe = [&] {
      return fmt::format("TMA load of {} bytes to {:#x}{}, mbarrier {:#x}", box->payload_bytes, dst.offset,
                         targets.size() > 1 ? fmt::format(" in {} CTAs", targets.size()) : "", bar.offset);
    };
    submit_traced(w, nullptr, describe, [&w, box, targets, dst, bar, op, passed = w.release()] {
      std::vector<uint8_t> rows;
      read_box(w, *box, rows);
      for (const Target& t : targets) {
        scatter_box(*box, rows.data(), t.cta->smem.data(), dst.offset);
        Covered covered{op, nullptr, 0};
        mbarrier_complete_tx(*t.barrier_cta, bar.offset, box->payload_bytes, &passed, &covered);
      }
    });
  }
  return Action::next;
}

/// mod: [0] rank, [1] reduction + 1 or 0. Operands: map, coordinates, src.
Action tensor_store(Warp& w, Fragment&, const Instr& in, Mask mask) {
  int rank = static_cast<int>(in.mod[0]);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    TensorMap map = map_at(w, lane, lane_address(w, in.ops[0], lane));
    if (map.rank != in.mod[0])
      throw Fault(Check::tensor_map,
                  fmt::format("rank {} of the map differs from the instruction's {}", map.rank, rank));
    auto box = std::make_shared<TensorBox>(make_box(map, coordinates(w, in, 1, lane), true));
    uint64_t address = lane_address(w, in.ops[1 + rank], lane);
    SharedPlace src = shared_place(w, address, box->smem_bytes, true);
    if (src.offset % 128)
      throw Fault(
          Check::misaligned,
          fmt::format("shared address {:#x} of a tensor copy is not aligned to 128 bytes", src.offset));
    uint32_t op = w.cta->cluster->async.add_operation(in.mod[1] ? "TMA reduce" : "TMA store", in.line,
                                                      w.cta->rank, w.index, nullptr);
    note_async_read(w, lane, *src.cta, src.offset, box->smem_bytes, op);
    auto rows = std::make_shared<std::vector<uint8_t>>(size_t{box->rows} * box->row_bytes);
    int reduce = static_cast<int>(in.mod[1]) - 1;
    std::string what = tracing(w) ? fmt::format("TMA {} of {} bytes from {:#x}",
                                                in.mod[1] ? "reduce" : "store", box->smem_bytes, src.offset)
                                  : "";
    submit_store(
        w, lane, op, what,
        [box, rows, src] { gather_box(*box, rows->data(), src.cta->smem.data(), src.offset); },
        [&w, box, rows, reduce] { write_box(w, *box, rows->data(), reduce); });
  }
  return Action::next;
}

Action commit_group(Warp& w, Fragment&, const Instr&, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    ThreadGroups& g = w.bulk_groups[first_lane(m)];
    g.committed.push_back(std::move(g.open));
    g.open.clear();
  }
  return Action::next;
}

/// mod: [0] groups that may stay, [1] only the reads.
Action wait_group(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  Cluster& cluster = *w.cta->cluster;
  for (Mask m = mask; m; m &= m - 1) {
    ThreadGroups& g = w.bulk_groups[first_lane(m)];
    size_t done = g.committed.size() > in.mod[0] ? g.committed.size() - in.mod[0] : 0;
    for (size_t i = 0; i < done; ++i)
      for (const auto& copy : g.committed[i])
        if (!(in.mod[1] ? copy->read : copy->written)) {
          f.wait_on(&w.async_version);
          f.describe_wait = [] {
            return std::string("waits for its bulk copies (cp.async.bulk.wait_group)");
          };
          return Action::wait;
        }
  }
  for (Mask m = mask; m; m &= m - 1) {
    ThreadGroups& g = w.bulk_groups[first_lane(m)];
    size_t done = g.committed.size() > in.mod[0] ? g.committed.size() - in.mod[0] : 0;
    for (size_t i = 0; i < done; ++i)
      for (const auto& copy : g.committed[i]) {
        OperationRecord& r = cluster.async.operation(copy->operation);
        if (!r.observed) r.told.push_back(w.now());
        r.observed = true;
      }
    g.committed.erase(g.committed.begin(), g.committed.begin() + static_cast<ptrdiff_t>(done));
  }
  return Action::next;
}

Action prefetch_tensor(Warp& w, Fragment&, const Instr& in, Mask mask) {
  int lane = first_lane(mask);
  TensorMap map = map_at(w, lane, lane_address(w, in.ops[0], lane));
  make_box(map, coordinates(w, in, 1, lane), false);
  return Action::next;
}

// --- decoding ---

const std::initializer_list<std::string_view> kDims = {"1d", "2d", "3d", "4d", "5d"};
const std::initializer_list<std::string_view> kReductions = {"add", "min",  "max", "and", "or",
                                                             "xor", "exch", "cas", "inc", "dec"};

/// "[map, {c0, c1}]": the map's address and the coordinates.
void map_and_coordinates(Decode& d, const ParsedOperand& p, uint32_t rank) {
  if (p.kind != ParsedOperand::Kind::address || p.parts.size() != 2) d.fail("expected [map, {coordinates}]");
  d.address(p);
  auto parts = Decode::parts(p.parts[1]);
  if (parts.size() != rank) d.fail("wrong number of coordinates");
  for (const ParsedOperand* c : parts) d.src(*c, 4);
}

void decode_tensor(Decode& d, bool reduce, bool prefetch) {
  uint32_t rank = static_cast<uint32_t>(d.need_one_of(kDims)) + 1;
  d.out.mod[0] = rank;
  if (d.take_one_of({"im2col", "im2col::w", "im2col::w::128", "im2col_no_offs", "tile::gather4",
                     "tile::scatter4"}) >= 0)
    d.fail("only the tile mode of tensor copies is supported");
  d.take("tile");
  bool hint = d.take("L2::cache_hint");
  if (prefetch) {
    d.need_one_of({"L2"});
    d.need_one_of({"global"});
    d.need_count(hint ? 2 : 1, hint ? 2 : 1);
    map_and_coordinates(d, d.parsed(0), rank);
    d.out.run = prefetch_tensor;
    return;
  }
  if (d.take("bulk_group")) {
    d.need_one_of({"global"});
    d.need_one_of({"shared::cta"});
    d.out.mod[1] = reduce ? static_cast<uint32_t>(d.need_one_of(kReductions)) + 1 : 0;
    d.need_count(hint ? 3 : 2, hint ? 3 : 2);
    map_and_coordinates(d, d.parsed(0), rank);
    d.address(d.parsed(1));
    d.out.run = tensor_store;
    // Reductions of different clusters meet in memory; floating sums depend on their order.
    if (reduce) d.module.program().clusters_communicate = true;
    return;
  }
  if (reduce) d.fail("a tensor reduction goes to global memory with .bulk_group");
  int to = d.need_one_of({"shared::cluster", "shared::cta"});
  d.need_one_of({"global"});
  d.need_one_of({"mbarrier::complete_tx::bytes"});
  d.out.mod[1] = d.take("multicast::cluster");
  int group = d.take_one_of({"cta_group::1", "cta_group::2"});
  d.out.mod[2] = static_cast<uint32_t>(group + 1);
  d.out.mod[3] = to == 1;
  size_t n = 3 + (d.out.mod[1] ? 1 : 0) + (hint ? 1 : 0);
  d.need_count(n, n);
  d.address(d.parsed(0));
  map_and_coordinates(d, d.parsed(1), rank);
  d.address(d.parsed(2));
  if (d.out.mod[1]) d.src_at_least(d.parsed(3), 4);
  d.out.run = tensor_load;
  d.module.program().reads_global_async = true;
}

void decode_cp(Decode& d) {
  if (!d.has("async")) d.fail("only cp.async and cp.reduce.async are known");
  if (!d.has("bulk")) {
    decode_small_copy(d);
    return;
  }
  d.take("async");
  d.take("bulk");
  bool reduce = d.take("reduce");
  if (d.take("commit_group")) {
    d.need_count(0, 0);
    d.out.run = commit_group;
    return;
  }
  if (d.take("wait_group")) {
    d.out.mod[1] = d.take("read");
    d.need_count(1, 1);
    d.out.mod[0] = static_cast<uint32_t>(d.immediate(d.parsed(0)));
    d.out.run = wait_group;
    return;
  }
  if (d.take("tensor")) {
    decode_tensor(d, reduce, d.take("prefetch"));
    return;
  }
  decode_linear_copy(d, reduce);
}

}  // namespace

void register_bulk_copy(OpcodeTable& t) {
  t["cp"] = decode_cp;
  t["tensormap"] = decode_tensormap;
}

}  // namespace gemmtune::emulator
