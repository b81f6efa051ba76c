// cp.async.bulk and cp.reduce.async.bulk without .tensor (ptx-facts 1.3).
#include <fmt/format.h>

#include "emulator/exec_bulk.h"

namespace gemmtune::emulator {
namespace {

uint32_t bulk_size(Warp& w, const Operand& op, int lane) {
  uint32_t bytes = static_cast<uint32_t>(lane_value(w, op, lane));
  if (bytes % 16)
    throw Fault(Check::misaligned, fmt::format("bulk copy of {} bytes, not a multiple of 16", bytes));
  return bytes;
}

void check_16(uint64_t address) {
  if (address % 16)
    throw Fault(Check::misaligned, fmt::format("bulk copy: address {:#x} is not a multiple of 16", address));
}

/// Global to shared. mod: [1] multicast, [3] own shared only. Operands: dst, src, size, mbar, cta mask.
Action bulk_load(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint32_t bytes = bulk_size(w, in.ops[2], lane);
    SharedPlace dst = shared_cta(w, lane_address(w, in.ops[0], lane), in.mod[3]);
    uint64_t source = lane_address(w, in.ops[1], lane);
    check_16(dst.offset);
    check_16(source);
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[3], lane), false);
    uint32_t ctas = in.mod[1] ? static_cast<uint32_t>(lane_value(w, in.ops[4], lane)) & 0xffff : 0;
    std::vector<Target> targets = targets_of(w, dst, bar, in.mod[1], ctas, false);
    const uint8_t* from = bytes ? global_place(w, source, bytes, false) : nullptr;
    check_async_global_read(w, lane, source, bytes, "bulk copy");
    uint32_t op = w.cta->cluster->async.add_operation("bulk copy", in.line, w.cta->rank, w.index, nullptr);
    for (const Target& t : targets) {
      check_target(t, dst.offset, bytes);
      mbarrier_for(w, *t.barrier_cta, bar.offset);
      if (bytes) note_async_write(w, *t.cta, dst.offset, bytes, op);
    }
    auto describe = [&] {
      return fmt::format("bulk copy of {} bytes to {:#x}, mbarrier {:#x}", bytes, dst.offset, bar.offset);
    };
    submit_traced(w, nullptr, describe, [=, passed = w.release()] {
      for (const Target& t : targets) {
        if (bytes) std::memcpy(t.cta->smem.data() + dst.offset, from, bytes);
        Covered covered{op, nullptr, 0};
        mbarrier_complete_tx(*t.barrier_cta, bar.offset, bytes, &passed, &covered);
      }
    });
  }
  return Action::next;
}

/// Own shared memory to a CTA of the cluster. mod: [1] reduction + 1, [2] its type. Operands: dst, src, size,
/// mbar.
Action bulk_exchange(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint32_t bytes = bulk_size(w, in.ops[2], lane);
    SharedPlace dst = shared_place(w, lane_address(w, in.ops[0], lane), bytes, false);
    SharedPlace src = shared_place(w, lane_address(w, in.ops[1], lane), bytes, true);
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[3], lane), false);
    check_16(dst.offset);
    check_16(src.offset);
    if (bar.cta != dst.cta)
      throw Fault(Check::mbarrier, "the barrier of a bulk copy must lie in the destination's CTA");
    mbarrier_for(w, *bar.cta, bar.offset);
    uint32_t op = w.cta->cluster->async.add_operation("bulk copy", in.line, w.cta->rank, w.index, nullptr);
    if (!bytes) continue;
    note_async_read(w, lane, *src.cta, src.offset, bytes, op);
    note_async_write(w, *dst.cta, dst.offset, bytes, op);
    uint32_t reduce = in.mod[1];
    ScalarType type = static_cast<ScalarType>(in.mod[2]);
    auto describe = [&] { return fmt::format("bulk copy of {} bytes between CTAs", bytes); };
    submit_traced(w, nullptr, describe, [=, passed = w.release()] {
      uint8_t* to = dst.cta->smem.data() + dst.offset;
      const uint8_t* from = src.cta->smem.data() + src.offset;
      if (!reduce) {
        std::memmove(to, from, bytes);
      } else {
        uint32_t size = static_cast<uint32_t>(size_bytes(type));
        for (uint32_t i = 0; i < bytes; i += size) {
          uint64_t old = 0, b = 0;
          std::memcpy(&old, to + i, size);
          std::memcpy(&b, from + i, size);
          uint64_t now = atomic_value(reduce - 1, type, old, b, 0);
          std::memcpy(to + i, &now, size);
        }
      }
      Covered covered{op, nullptr, 0};
      mbarrier_complete_tx(*bar.cta, bar.offset, bytes, &passed, &covered);
    });
  }
  return Action::next;
}

/// Shared to global. mod: [1] reduction + 1, [2] its type. Operands: dst, src, size.
Action bulk_store(Warp& w, Fragment&, const Instr& in, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint32_t bytes = bulk_size(w, in.ops[2], lane);
    if (!bytes) continue;
    uint64_t target = lane_address(w, in.ops[0], lane);
    check_16(target);
    SharedPlace src = shared_place(w, lane_address(w, in.ops[1], lane), bytes, true);
    check_16(src.offset);
    uint8_t* to = global_place(w, target, bytes, true);
    uint32_t op = w.cta->cluster->async.add_operation("bulk store", in.line, w.cta->rank, w.index, nullptr);
    note_async_read(w, lane, *src.cta, src.offset, bytes, op);
    auto data = std::make_shared<std::vector<uint8_t>>(bytes);
    uint32_t reduce = in.mod[1];
    ScalarType type = static_cast<ScalarType>(in.mod[2]);
    submit_store(
        w, lane, op, fmt::format("bulk store of {} bytes from {:#x}", bytes, src.offset),
        [=] { std::memcpy(data->data(), src.cta->smem.data() + src.offset, bytes); },
        [=] {
          if (!reduce) {
            std::memcpy(to, data->data(), bytes);
            return;
          }
          uint32_t size = static_cast<uint32_t>(size_bytes(type));
          for (uint32_t i = 0; i < bytes; i += size) {
            uint64_t old = 0, b = 0;
            std::memcpy(&old, to + i, size);
            std::memcpy(&b, data->data() + i, size);
            uint64_t now = atomic_value(reduce - 1, type, old, b, 0);
            std::memcpy(to + i, &now, size);
          }
        });
  }
  return Action::next;
}

Action nothing(Warp&, Fragment&, const Instr&, Mask) { return Action::next; }

const std::initializer_list<std::string_view> kReductions = {"add", "min",  "max", "and", "or",
                                                             "xor", "exch", "cas", "inc", "dec"};

}  // namespace

void decode_linear_copy(Decode& d, bool reduce) {
  bool hint = d.take("L2::cache_hint");
  if (d.take("prefetch")) {
    d.need_one_of({"L2"});
    d.need_one_of({"global"});
    d.need_count(hint ? 3 : 2, hint ? 3 : 2);
    d.address(d.parsed(0));
    d.src(d.parsed(1), 4);
    d.out.run = nothing;
    return;
  }
  if (reduce) {
    d.out.mod[1] = static_cast<uint32_t>(d.need_one_of(kReductions)) + 1;
    d.take("noftz");
    d.out.mod[2] = static_cast<uint32_t>(d.need_type());
  }
  if (d.take("bulk_group")) {
    d.need_one_of({"global"});
    d.need_one_of({"shared::cta"});
    d.need_count(hint ? 4 : 3, hint ? 4 : 3);
    d.address(d.parsed(0));
    d.address(d.parsed(1));
    d.src(d.parsed(2), 4);
    d.out.run = bulk_store;
    if (reduce) d.module.program().clusters_communicate = true;
    return;
  }
  d.need_one_of({"mbarrier::complete_tx::bytes"});
  bool from_global = d.take("global");
  bool multicast = d.take("multicast::cluster");
  bool cluster = d.take("shared::cluster"), own = d.take("shared::cta");
  if (from_global) {
    if (reduce || cluster == own) d.fail("unknown form of bulk copy");
    d.out.mod[1] = multicast;
    d.out.mod[3] = own;
    size_t n = 4 + (multicast ? 1 : 0) + (hint ? 1 : 0);
    d.need_count(n, n);
    d.address(d.parsed(0));
    d.address(d.parsed(1));
    d.src(d.parsed(2), 4);
    d.address(d.parsed(3));
    if (multicast) d.src_at_least(d.parsed(4), 4);
    d.out.run = bulk_load;
    d.module.program().reads_global_async = true;
    return;
  }
  if (!cluster || !own) d.fail("unknown form of bulk copy");
  d.need_count(4, 4);
  d.address(d.parsed(0));
  d.address(d.parsed(1));
  d.src(d.parsed(2), 4);
  d.address(d.parsed(3));
  d.out.run = bulk_exchange;
}

}  // namespace gemmtune::emulator
