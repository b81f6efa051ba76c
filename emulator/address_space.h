// The 64-bit generic address space: windows by bits 40 and up. PTX leaves the numbers open; a real GPU's
// windows differ.
#pragma once

#include <cstdint>

namespace gemmtune::emulator {

constexpr int kWindowShift = 40;
constexpr uint64_t kSharedWindow = 1ull << kWindowShift;  ///< | rank << 24 | offset
constexpr uint64_t kLocalWindow = 2ull << kWindowShift;   ///< | offset in the lane's frame
constexpr uint64_t kParamWindow = 3ull << kWindowShift;   ///< | offset in the kernel's parameters
constexpr uint64_t kModuleWindow =
    4ull << kWindowShift;  ///< | offset in the module's .global and .const variables
constexpr uint64_t kGlobalBase = 0x70ull << kWindowShift;  ///< allocations

/// Shared addresses are rank << 24 | offset; the first 1 KiB is reserved (ptx-facts 6.2, 7; measured on an
/// H200).
constexpr int kRankShift = 24;
constexpr uint32_t kSharedOffsetMask = (1u << kRankShift) - 1;
constexpr uint32_t kSharedBase = 0x400;

}  // namespace gemmtune::emulator
