#include "emulator/global_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/address_space.h"

namespace gemmtune::emulator {
namespace {

/// Unmapped bytes between allocations.
constexpr uint64_t kGuardBytes = 1 << 16;
/// Fresh memory is a NaN pattern in every floating type and no plausible address.
constexpr int kPoison = 0xff;

}  // namespace

GlobalMemory::GlobalMemory() : next_(kGlobalBase + kGuardBytes) {}

uint64_t GlobalMemory::allocate(uint64_t bytes, uint64_t align) {
  uint64_t address = (next_ + align - 1) & ~(align - 1);
  next_ = address + bytes + kGuardBytes;
  Allocation a;
  a.address = address;
  a.bytes = bytes;
  a.data.reset(new uint8_t[bytes ? bytes : 1]);
  std::memset(a.data.get(), kPoison, bytes);
  allocations_.push_back(std::move(a));
  return address;
}

void GlobalMemory::free(uint64_t address) {
  std::erase_if(allocations_, [&](const Allocation& a) { return a.address == address; });
}

uint8_t* GlobalMemory::find(uint64_t address, uint64_t bytes, const Allocation** hint) const {
  if (hint && *hint && (*hint)->contains(address, bytes))
    return (*hint)->data.get() + (address - (*hint)->address);
  auto it = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                             [](uint64_t a, const Allocation& b) { return a < b.address; });
  if (it == allocations_.begin()) return nullptr;
  --it;
  if (!it->contains(address, bytes)) return nullptr;
  if (hint) *hint = &*it;
  return it->data.get() + (address - it->address);
}

std::string GlobalMemory::describe(uint64_t address) const {
  const Allocation* nearest = nullptr;
  uint64_t distance = 0;
  bool before = false;
  for (const Allocation& a : allocations_) {
    bool is_before = address < a.address;
    uint64_t d = is_before ? a.address - address : address - a.address;
    if (!is_before && address < a.address + a.bytes)
      return fmt::format("crosses the end of the allocation {:#x} ({} bytes)", a.address, a.bytes);
    if (!is_before) d = address - (a.address + a.bytes);
    if (!nearest || d < distance) nearest = &a, distance = d, before = is_before;
  }
  if (!nearest) return "no memory is allocated";
  return fmt::format("{} bytes {} the allocation {:#x} ({} bytes)", distance,
                     before ? "before the start of" : "past the end of", nearest->address, nearest->bytes);
}

}  // namespace gemmtune::emulator
