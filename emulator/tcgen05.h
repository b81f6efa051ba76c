// What the tcgen05 files share: CTA pairs, the queue of a thread's tensor work, checks of tensor-memory
// addresses.
#pragma once

#include "emulator/exec.h"

namespace gemmtune::emulator {

/// CTAs that an instruction of this cta_group acts on; throws if the pair is incomplete or a peer has exited.
std::vector<Cta*> tcgen05_ctas(Warp& w, uint32_t cta_group);
/// mma, cp, shift and commit of one thread run in order (ptx-facts 1.6).
InOrder& tensor_queue(Warp& w, int lane);
/// Throws unless [column, column + columns) was allocated.
void check_columns(const Cta& cta, uint32_t column, uint32_t columns);
/// Takes .cta_group; a kernel may use one value only (ptxas refuses a mixture).
uint32_t take_cta_group(Decode& d);

inline uint32_t tmem_lane(uint32_t address) { return address >> kTmemLaneShift; }
inline uint32_t tmem_column(uint32_t address) { return address & 0xffff; }

void decode_tcgen05_mma(Decode&);
void decode_tcgen05_cp(Decode&);
void decode_tcgen05_load_store(Decode&, bool is_load);

/// A column goes from the warp that read or stored it to this one: that needs a barrier between the two, and
/// tcgen05 fences on both sides of it.
void check_hand_over(Warp& w, const Cta& cta, uint32_t column, const Tmem::Access& before, const char* what);

}  // namespace gemmtune::emulator
