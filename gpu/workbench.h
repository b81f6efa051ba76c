// Device memory of one problem: operand sets, fills, references, guards, verdicts. Lives in the GPU worker.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gemm/problem.h"
#include "gpu/cuda_driver.h"
#include "gpu/launcher.h"
#include "search/trial.h"

namespace gemmtune {

/// A buffer between two guard bands. Nothing may write outside it.
class GuardedBuffer {
 public:
  static constexpr int64_t kGuardBytes = 64 * 1024;
  static constexpr unsigned char kPattern = 0xa5;
  GuardedBuffer() = default;
  GuardedBuffer(int64_t bytes, CUstream stream);
  CUdeviceptr address() const { return memory_.address() + kGuardBytes; }
  int64_t bytes() const { return bytes_; }
  CUdeviceptr front_guard() const { return memory_.address(); }
  /// Begins right behind the last byte and is a little longer than kGuardBytes.
  CUdeviceptr back_guard() const { return address() + static_cast<CUdeviceptr>(bytes_); }
  int64_t back_guard_bytes() const { return static_cast<int64_t>(memory_.bytes()) - kGuardBytes - bytes_; }

 private:
  DeviceBuffer memory_;
  int64_t bytes_ = 0;
};

/// The judging kernels (gpu/kernels/support.cu), loaded into the current context.
class SupportKernels {
 public:
  explicit SupportKernels(const std::string& cubin);
  CUfunction fill, reference_exact, reference_bound, compare_exact, compare_bound, check_guard, canary_gemm;

 private:
  Module module_;
};

/// A, B, C and D of one shape with one fill, and what D must be.
class CheckSet {
 public:
  CheckSet(const SupportKernels& kernels, CUstream stream, const Problem& problem, float alpha, float beta,
           Fill fill, uint64_t seed);
  Fill fill() const { return fill_; }
  OperandAddresses addresses() const;
  /// Three launches: onto NaNs, onto numbers, onto the output of the one before. Compares every element with
  /// the reference; all three must agree bit for bit. Checks the guards.
  ValidationCase judge(const Launch& launch);
  /// One launch more, any time later. What is wrong with it, or "".
  std::string recheck(const Launch& launch);

 private:
  struct Verdict {  ///< twin of support.cu's
    uint64_t mismatches = 0, first = ~uint64_t{0};
    uint32_t max_abs_error = 0, max_over_bound = 0;  ///< f32 bits
  };
  enum class Against { reference, first_launch };
  Verdict compare(Against against) const;
  bool guards_intact() const;
  void fill_output(unsigned char byte) const;
  std::string mismatch_text(uint64_t index) const;

  const SupportKernels& kernels_;
  CUstream stream_;
  Problem problem_;
  Fill fill_;
  GuardedBuffer a_, b_, c_, d_;
  DeviceBuffer expected_, magnitude_, scratch_, repeat_;
};

/// Operand sets for timing: normally distributed, enough of them that a rotation spans the larger of 256 MiB
/// and twice the L2 (protocol p1).
class TimingSets {
 public:
  TimingSets(const SupportKernels& kernels, CUstream stream, const Problem& problem, int64_t l2_bytes,
             uint64_t seed);
  size_t count() const { return sets_.size(); }
  const OperandAddresses& addresses(size_t index) const { return sets_[index]; }

 private:
  std::vector<DeviceBuffer> buffers_;
  std::vector<OperandAddresses> sets_;
};

}  // namespace gemmtune
