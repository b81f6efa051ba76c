// ld, st, st.async, prefetches (PTX ISA 9.7.9).
#include <fmt/format.h>

#include "emulator/exec.h"

namespace gemmtune::emulator {
namespace {

enum Space : uint32_t { kGeneric, kGlobal, kSharedCta, kSharedCluster, kLocal, kKernelParam };

/// Host memory behind one lane's access; notes shared accesses for the race checks.
template <uint32_t kSpace>
uint8_t* place(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write) {
  if (address & (bytes - 1))
    throw Fault(Check::misaligned,
                fmt::format("lane {}: address {:#x} is not a multiple of {}", lane, address, bytes));
  if constexpr (kSpace == kGlobal) {
    if (write) note_global_write(w, lane, address, bytes);
    return global_place(w, address, bytes, write);
  } else if constexpr (kSpace == kSharedCta || kSpace == kSharedCluster) {
    SharedPlace p = shared_place(w, address, bytes, kSpace == kSharedCta);
    if (write)
      note_generic_write(w, lane, *p.cta, p.offset, bytes);
    else
      note_generic_read(w, *p.cta, p.offset, bytes);
    return p.cta->smem.data() + p.offset;
  } else if constexpr (kSpace == kLocal) {
    return local_place(w, lane, address, bytes);
  } else if constexpr (kSpace == kKernelParam) {
    return generic_place(w, lane, kParamWindow | address, bytes, write);
  } else {
    return generic_place(w, lane, address, bytes, write);
  }
}

// mod: [0] bytes an element, [1] signed, [2] elements, [3] mask of the register, [5] volatile, relaxed,
// acquire or release. Operands: destinations, address.
template <uint32_t kSpace>
Action load(Warp& w, Fragment&, const Instr& in, Mask mask) {
  if (in.mod[5]) w.synchronize_through_memory(true, false);
  uint32_t bytes = in.mod[0], n = in.mod[2], all = bytes * n;
  const Operand& address = in.ops[n];
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    const uint8_t* from = place<kSpace>(w, lane, lane_address(w, address, lane), all, false);
    for (uint32_t i = 0; i < n; ++i, from += bytes) {
      const Operand& op = in.ops[i];
      if (op.kind == Operand::Kind::none) continue;
      uint8_t* d = dst_of(w, op);
      if (bytes == 4 && op.width == 4) {
        std::memcpy(d + 4 * lane, from, 4);
        continue;
      }
      if (bytes == 16) {
        std::memcpy(d + 16 * lane, from, 16);
        continue;
      }
      uint64_t v = 0;
      std::memcpy(&v, from, bytes);
      if (in.mod[1]) {
        int shift = 64 - 8 * static_cast<int>(bytes);
        v = static_cast<uint64_t>(static_cast<int64_t>(v << shift) >> shift);
      }
      if (op.width == 8)
        set<uint64_t>(d, lane, v);
      else
        set<uint32_t>(d, lane, static_cast<uint32_t>(v) & in.mod[3]);
    }
  }
  return Action::next;
}

template <uint32_t kSpace>
Action store(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t bytes = in.mod[0], n = in.mod[2], all = bytes * n;
  if (in.mod[5]) w.synchronize_through_memory(false, true);
  const Operand& address = in.ops[n];
  ++w.cta->cluster->tick;
  ++w.cta->cluster->events;
  const uint8_t* sources[8];
  for (uint32_t i = 0; i < n; ++i) sources[i] = w.read(in.ops[i]);
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    uint8_t* to = place<kSpace>(w, lane, lane_address(w, address, lane), all, true);
    for (uint32_t i = 0; i < n; ++i, to += bytes) std::memcpy(to, sources[i] + lane * in.ops[i].width, bytes);
  }
  return Action::next;
}

Handler pick(bool is_load, uint32_t space) {
  switch (space) {
    case kGlobal:
      return is_load ? load<kGlobal> : store<kGlobal>;
    case kSharedCta:
      return is_load ? load<kSharedCta> : store<kSharedCta>;
    case kSharedCluster:
      return is_load ? load<kSharedCluster> : store<kSharedCluster>;
    case kLocal:
      return is_load ? load<kLocal> : store<kLocal>;
    case kKernelParam:
      return is_load ? load<kKernelParam> : store<kKernelParam>;
    default:
      return is_load ? load<kGeneric> : store<kGeneric>;
  }
}

void drop_cache_hints(Decode& d) {
  d.drop({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged",
          "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B",
          "L2::evict_normal", "L2::evict_first", "L2::evict_last", "unified"});
}

/// `.param` is kernel parameters in a kernel, and the lane's own memory for calls.
uint32_t param_space(Decode& d, const ParsedOperand& address) {
  if (address.parts.empty() || address.parts[0].kind != ParsedOperand::Kind::name) return kKernelParam;
  auto found = d.module.find(d.function, d.in().scope, address.parts[0].name);
  if (found.kind != ModuleBuilder::Found::Kind::variable) return d.function.is_entry ? kKernelParam : kLocal;
  size_t index = static_cast<size_t>(found.index);
  bool formal =
      index >= d.function.variables.size() && index < d.function.variables.size() + d.function.params.size();
  return formal && d.function.is_entry ? kKernelParam : kLocal;
}

void decode_load_store(Decode& d, bool is_load) {
  bool ordered = d.take_one_of({"volatile", "relaxed", "acquire", "release", "mmio"}) >= 0;
  d.take("mmio");
  d.take("weak");
  d.drop({"cta", "cluster", "gpu", "sys"});
  int space = d.take_one_of({"global", "shared", "shared::cta", "shared::cluster", "local", "param", "const",
                             "param::entry", "param::func"});
  d.take("nc");
  bool hint = d.take("L2::cache_hint");
  drop_cache_hints(d);
  int vector = d.take_one_of({"v2", "v4", "v8"});
  uint32_t n = vector < 0 ? 1 : 2u << vector;
  ScalarType t = d.need_type();
  uint32_t bytes = static_cast<uint32_t>(size_bytes(t));
  if (bytes == 0 || t == ScalarType::f32x2) d.fail("type is not supported here");
  if (bytes * n > 32 || (bytes * n == 32 && space != 0)) d.fail("vector is too long");
  d.need_count(hint ? 3 : 2, hint ? 3 : 2);
  const ParsedOperand& address = d.parsed(is_load ? 1 : 0);
  const ParsedOperand& value = d.parsed(is_load ? 0 : 1);
  auto parts = Decode::parts(value);
  if (parts.size() != n) d.fail("wrong number of vector elements");
  for (const ParsedOperand* p : parts) {
    int width = std::max<int>(4, static_cast<int>(bytes));
    if (is_load)
      d.dst_at_least(*p, width);
    else if (p->kind == ParsedOperand::Kind::integer && bytes <= 4)
      d.src(*p, 4);
    else
      d.src_at_least(*p, width);
  }
  d.address(address);
  if (hint) d.src(d.parsed(2), 8);
  d.out.mod[0] = bytes;
  d.out.mod[1] = is_signed(t);
  d.out.mod[2] = n;
  d.out.mod[5] = ordered;
  // A sign-extended byte in a 16-bit register fills 16 bits, in a 32-bit register all.
  d.out.mod[3] = ~0u;
  if (is_load && is_signed(t) && parts[0]->kind == ParsedOperand::Kind::name &&
      d.register_bits(*parts[0]) == 16)
    d.out.mod[3] = 0xffff;
  uint32_t where = kGeneric;
  switch (space) {
    case 0:
    case 6:
      where = kGlobal;
      break;
    case 1:
    case 2:
      where = kSharedCta;
      break;
    case 3:
      where = kSharedCluster;
      break;
    case 4:
      where = kLocal;
      break;
    case 5:
    case 7:
    case 8:
      where = param_space(d, address);
      break;
    default:
      break;
  }
  // Shared addresses that a generic or .shared access is given carry rank bits; 32-bit registers hold them
  // whole.
  if (ordered && (where == kGlobal || where == kGeneric)) d.module.program().clusters_communicate = true;
  d.out.run = pick(is_load, where);
}

/// st.async.shared::cluster.mbarrier::complete_tx::bytes [addr], value, [mbar].
/// mod: as store. Operands: values, address, mbarrier.
Action store_async(Warp& w, Fragment&, const Instr& in, Mask mask) {
  uint32_t bytes = in.mod[0], n = in.mod[2];
  for (Mask m = mask; m; m &= m - 1) {
    int lane = first_lane(m);
    SharedPlace to = shared_place(w, lane_address(w, in.ops[n], lane), bytes * n, false);
    SharedPlace bar = shared_cta(w, lane_address(w, in.ops[n + 1], lane), false);
    std::array<uint8_t, 32> value{};
    for (uint32_t i = 0; i < n; ++i)
      std::memcpy(value.data() + i * bytes, w.read(in.ops[i]) + lane * in.ops[i].width, bytes);
    uint32_t op = w.cta->cluster->async.add_operation("st.async", in.line, w.cta->rank, w.index, nullptr);
    note_async_write(w, *to.cta, to.offset, bytes * n, op);
    submit(w, nullptr, [=, passed = w.release()] {
      std::memcpy(to.cta->smem.data() + to.offset, value.data(), bytes * n);
      Covered covered{op, nullptr, 0};
      mbarrier_complete_tx(*bar.cta, bar.offset, bytes * n, &passed, &covered);
    });
  }
  return Action::next;
}

void decode_store_async(Decode& d) {
  d.take("async");
  d.take("weak");
  d.need_one_of({"shared::cluster"});
  d.need_one_of({"mbarrier::complete_tx::bytes"});
  int vector = d.take_one_of({"v2", "v4"});
  uint32_t n = vector < 0 ? 1 : 2u << vector;
  ScalarType t = d.need_type();
  d.need_count(3, 3);
  auto parts = Decode::parts(d.parsed(1));
  if (parts.size() != n) d.fail("wrong number of vector elements");
  for (const ParsedOperand* p : parts) d.src(*p, std::max(4, size_bytes(t)));
  d.address(d.parsed(0));
  d.address(d.parsed(2));
  d.out.mod[0] = static_cast<uint32_t>(size_bytes(t));
  d.out.mod[2] = n;
  d.out.run = store_async;
}

Action nothing(Warp&, Fragment&, const Instr&, Mask) { return Action::next; }

void decode_prefetch(Decode& d) {
  if (d.take("tensormap")) {
    d.take_one_of({"param", "const"});
    d.need_count(1, 1);
    d.address(d.parsed(0));
    d.out.run = check_tensor_map_address;
    return;
  }
  d.take_one_of({"global", "local"});
  d.need_one_of({"L1", "L2", "L2::evict_last", "L2::evict_normal"});
  d.need_count(1, 1);
  d.address(d.parsed(0));
  d.out.run = nothing;
}

}  // namespace

void register_memory(OpcodeTable& t) {
  t["ld"] = [](Decode& d) { decode_load_store(d, true); };
  t["ldu"] = t["ld"];
  t["st"] = [](Decode& d) {
    if (d.has("async"))
      decode_store_async(d);
    else
      decode_load_store(d, false);
  };
  t["prefetch"] = decode_prefetch;
  t["prefetchu"] = [](Decode& d) {
    d.need_one_of({"L1"});
    d.need_count(1, 1);
    d.address(d.parsed(0));
    d.out.run = nothing;
  };
  t["applypriority"] = [](Decode& d) {
    d.take("global");
    d.need_one_of({"L2::evict_normal"});
    d.need_count(2, 2);
    d.address(d.parsed(0));
    d.out.run = nothing;
  };
  t["discard"] = [](Decode& d) {
    d.take("global");
    d.need_one_of({"L2"});
    d.need_count(2, 2);
    d.address(d.parsed(0));
    d.out.run = nothing;
  };
}

}  // namespace gemmtune::emulator
