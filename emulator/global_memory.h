// Emulated device memory: allocations with unmapped space around them, so that one byte too far is seen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gemmtune::emulator {

class GlobalMemory {
 public:
  struct Allocation {
    uint64_t address = 0, bytes = 0;
    std::unique_ptr<uint8_t[]> data;
    bool contains(uint64_t a, uint64_t n) const {
      return a >= address && n <= bytes && a - address <= bytes - n;
    }
  };

  uint64_t allocate(uint64_t bytes, uint64_t align);
  void free(uint64_t address);
  /// nullptr unless [address, address + bytes) lies inside one allocation.
  uint8_t* find(uint64_t address, uint64_t bytes, const Allocation** hint = nullptr) const;
  /// "128 bytes past the end of the allocation 0x7000... (4096 bytes)".
  std::string describe(uint64_t address) const;

 private:
  std::vector<Allocation> allocations_;  // sorted by address
  uint64_t next_;

 public:
  GlobalMemory();
};

}  // namespace gemmtune::emulator
