// Runs a launch file: allocates and fills its buffers, lays out the parameters, launches, compares.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/emulator.h"
#include "emulator/launch_file.h"

namespace gemmtune::emulator {

/// One buffer against what its launch file expects.
struct BufferCheck {
  std::string name;
  int64_t elements = 0, mismatches = 0;
  double max_abs_error = 0;
  std::string first_mismatch;  ///< "[3, 9]: got 1.5, want 2" or empty
};

class LaunchRun {
 public:
  /// Throws UsageError where the file does not fit the kernel: parameters, tensor maps, sizes of files.
  LaunchRun(const LaunchFile& file, Module& module);

  /// Fills the buffers anew, so that every run starts from the same memory.
  LaunchResult run(const LaunchConfig& how);
  std::vector<uint8_t> bytes(const BufferSpec& buffer) const;
  /// Buffers that have an expectation, after the latest run.
  std::vector<BufferCheck> compare();

 private:
  uint64_t address(const std::string& buffer) const { return addresses_.at(buffer); }
  const BufferSpec& buffer(const std::string& name) const;
  std::vector<uint8_t> parameter_bytes();
  std::vector<uint8_t> initial(const BufferSpec& buffer) const;
  std::vector<double> expected(const BufferSpec& buffer) const;
  const std::vector<double>& expectation(const BufferSpec& buffer);

  LaunchFile file_;
  Module& module_;
  Device device_;
  std::map<std::string, uint64_t> addresses_;
  std::map<std::string, TensorMapBytes> maps_;
  std::map<std::string, std::vector<uint8_t>> initial_;
  std::map<std::string, std::vector<double>> expected_;  ///< the same after every run: formed once
  std::vector<uint8_t> params_;
  std::string kernel_;
};

}  // namespace gemmtune::emulator
