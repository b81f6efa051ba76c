// What instruction handlers share: loops over lanes, typed access to registers, addresses, convergence.
#pragma once

#include <bit>
#include <cstring>
#include <string>

#include "emulator/decode.h"
#include "emulator/state.h"

namespace gemmtune::emulator {

constexpr Mask kAllLanes = ~Mask{0};
/// Instr::mod[4] of wgmma.mma_async: it may touch registers of an earlier one.
constexpr uint32_t kWgmmaMark = 0x3661b1;

/// Registers hold narrow values in 4-byte lanes, zero-extended; 64-bit values in 8-byte lanes.
template <class T>
constexpr int kStride = sizeof(T) <= 4 ? 4 : sizeof(T);

template <class T>
T get(const uint8_t* base, int lane) {
  T value;
  std::memcpy(&value, base + lane * kStride<T>, sizeof(T));
  return value;
}

template <class T>
void set(uint8_t* base, int lane, T value) {
  if constexpr (sizeof(T) < 4) {
    uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof(T));
    std::memcpy(base + lane * 4, &wide, 4);
  } else {
    std::memcpy(base + lane * kStride<T>, &value, sizeof(T));
  }
}

/// The full mask gets a loop without tests, which the compiler vectorises.
template <class F>
inline __attribute__((always_inline)) void for_lanes(Mask mask, F body) {
  if (mask == kAllLanes) {
#ifndef __clang__  // which warns of it
#pragma GCC ivdep
#endif
    for (int lane = 0; lane < 32; ++lane) body(lane);
  } else {
    for (Mask m = mask; m; m &= m - 1) body(std::countr_zero(m));
  }
}

inline const uint8_t* Warp::read(const Operand& op) const {
  return op.kind == Operand::Kind::reg ? registers.get() + op.offset
                                       : cta->cluster->launch->program->constants.data() + op.offset;
}

inline Mask Warp::predicate(const Operand& op) const {
  Mask m;
  std::memcpy(&m, read(op), 4);
  return op.negated ? ~m : m;
}

inline uint8_t* dst_of(Warp& w, const Operand& op) { return w.registers.get() + op.offset; }

/// Changes the bits of `mask` only.
inline void set_predicate(Warp& w, const Operand& op, Mask mask, Mask value) {
  if (op.kind == Operand::Kind::none) return;
  Mask old;
  uint8_t* at = dst_of(w, op);
  std::memcpy(&old, at, 4);
  Mask now = (old & ~mask) | (value & mask);
  std::memcpy(at, &now, 4);
}

/// Value of an operand in one lane, zero-extended.
inline uint64_t lane_value(const Warp& w, const Operand& op, int lane) {
  const uint8_t* base = w.read(op);
  return op.width == 8 ? get<uint64_t>(base, lane) : get<uint32_t>(base, lane);
}

/// Address of an address operand: base + displacement, with the rank of a shared symbol.
inline uint64_t lane_address(const Warp& w, const Operand& op, int lane) {
  if (op.kind == Operand::Kind::none)
    return static_cast<uint64_t>(op.value) + (op.shared_symbol ? uint64_t{w.cta->rank} << kRankShift : 0);
  const uint8_t* base = w.read(op);
  // 32-bit addresses wrap in 32 bits.
  if (op.width == 8) return get<uint64_t>(base, lane) + static_cast<uint64_t>(op.value);
  return static_cast<uint32_t>(get<uint32_t>(base, lane) + static_cast<uint32_t>(op.value));
}

inline int first_lane(Mask mask) { return std::countr_zero(mask); }

/// A shared address as CTA and offset.
struct SharedPlace {
  Cta* cta;
  uint32_t offset;
};

/// `own_only`: .shared::cta, where another CTA's rank bits trap (ptx-facts 6.2). Throws Fault out of bounds.
SharedPlace shared_place(Warp& w, uint64_t address, uint32_t bytes, bool own_only);
/// Same without bounds, for barriers whose functions check themselves.
SharedPlace shared_cta(Warp& w, uint64_t address, bool own_only);
/// Generic address of the shared window, or a plain shared address, to a plain one.
inline uint64_t plain_shared(uint64_t address) {
  return address >> kWindowShift == kSharedWindow >> kWindowShift ? address & 0xffffffff : address;
}

/// Host pointer to global, module, parameter or (generic) any other memory. Throws Fault.
uint8_t* global_place(Warp& w, uint64_t address, uint32_t bytes, bool write);
uint8_t* generic_place(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write);
uint8_t* local_place(Warp& w, int lane, uint64_t offset, uint32_t bytes);

/// Barriers entitle the warp to take the operation for complete. 0, no operation, is known.
bool knows(Warp& w, uint32_t operation);
/// Race bookkeeping of generic accesses to shared memory.
void note_generic_write(Warp& w, int lane, Cta& cta, uint32_t offset, uint32_t bytes);
void note_generic_read(Warp& w, Cta& cta, uint32_t offset, uint32_t bytes);
/// Of asynchronous ones, at issue. `what` names the reader in messages.
void note_async_read(Warp& w, int lane, Cta& cta, uint32_t offset, uint32_t bytes, uint32_t operation);
void note_async_write(Warp& w, Cta& cta, uint32_t offset, uint32_t bytes, uint32_t operation);

/// True when all of `required` stands in this fragment; otherwise the fragment is told to wait for the
/// others.
bool converged(Warp& w, Fragment& f, Mask required);
/// For .aligned instructions: every live lane, and none switched off by the guard. Throws Fault on the
/// latter.
bool aligned(Warp& w, Fragment& f, Mask mask);

/// Handlers and decoders that more than one file needs.
Action check_tensor_map_address(Warp&, Fragment&, const Instr&, Mask);
void decode_small_copy(Decode&);
/// One read-modify-write; `op` is add, min, max, and, or, xor, exch, cas, inc, dec in this order.
uint64_t atomic_value(uint32_t op, ScalarType type, uint64_t old, uint64_t b, uint64_t c);

/// The columns of this warp's loads are read: after tcgen05.wait::ld, or once a dependent instruction has
/// run.
void finish_tmem_loads(Warp& w);

/// Barriers that waited for threads which have just exited.
void release_barriers_after_exit(Cta& cta);

void report_here(Warp& w, Severity severity, Check check, const std::string& message);

/// Runs now (eager) or later.
void submit(Warp& w, const void* queue, std::function<void()> run);

inline bool tracing(const Warp& w) { return static_cast<bool>(w.cta->cluster->launch->config.trace); }
void trace(Warp& w, TraceEvent::Kind kind, const std::string& what, uint32_t id = 0);

/// As submit(), and a launch that traces shows the operation from issue to completion. `describe` returns
/// its text and is called only then.
template <class Describe>
void submit_traced(Warp& w, const void* queue, const Describe& describe, std::function<void()> run) {
  if (!tracing(w)) return submit(w, queue, std::move(run));
  uint32_t id = ++w.cta->cluster->trace_ids;
  trace(w, TraceEvent::Kind::issue, describe(), id);
  submit(w, queue, [&w, id, run = std::move(run)] {
    run();
    trace(w, TraceEvent::Kind::complete, "", id);
  });
}

}  // namespace gemmtune::emulator
