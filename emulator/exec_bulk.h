// What tensor copies, one-dimensional copies and tensor maps share.
#pragma once

#include <string>
#include <vector>

#include "emulator/exec.h"
#include "emulator/tma.h"

namespace gemmtune::emulator {

/// Throws Fault where the 128 bytes are no usable map.
TensorMap map_at(Warp& w, int lane, uint64_t address);

/// The CTAs that get the data and the barriers that are signalled for each.
struct Target {
  Cta* cta;
  Cta* barrier_cta;
};
std::vector<Target> targets_of(Warp& w, const SharedPlace& dst, const SharedPlace& bar, bool multicast,
                               uint32_t ctas, bool pair);
void check_target(const Target& t, uint32_t offset, uint32_t bytes);

/// Reads shared memory in one task, writes in a second one; the copy belongs to the lane's open group.
void submit_store(Warp& w, int lane, uint32_t op, const std::string& what, std::function<void()> read,
                  std::function<void()> write);

/// cp.async.bulk without .tensor; its qualifiers up to here are taken.
void decode_linear_copy(Decode& d, bool reduce);
void decode_tensormap(Decode& d);

}  // namespace gemmtune::emulator
