// Turns a LaunchPlan into a driver launch: tensor maps encoded, parameters laid out, cluster attribute set.
#pragma once

#include <cuda.h>

#include <array>
#include <string>
#include <vector>

#include "gemm/launch_plan.h"
#include "gpu/cuda_driver.h"

namespace gemmtune {

/// Device addresses of one operand set.
struct OperandAddresses {
  CUdeviceptr a = 0, b = 0, c = 0, d = 0, workspace = 0;
  CUdeviceptr of(Operand operand) const;
};

/// Something to launch any number of times on fixed operands: a variant's kernel, or the vendor library's.
class Launch {
 public:
  virtual ~Launch() = default;
  /// Throws CudaError.
  virtual void run(CUstream stream) const = 0;
};

/// A variant's kernel.
class PreparedLaunch final : public Launch {
 public:
  /// Throws CudaError (cuTensorMapEncodeTiled refuses a map).
  PreparedLaunch(CUfunction function, const LaunchPlan& plan, const OperandAddresses& operands);
  void run(CUstream stream) const override;

 private:
  CUfunction function_;
  LaunchPlan plan_;
  struct alignas(64) Slot {
    std::array<unsigned char, 128> bytes;
  };
  std::vector<Slot> slots_;
};

/// Raises the dynamic shared-memory limit to the plan's. Throws CudaError.
void configure(CUfunction function, const LaunchPlan& plan);

/// Clusters of this plan's shape that are resident at once on the current device.
int max_active_clusters(CUfunction function, const LaunchPlan& plan);

}  // namespace gemmtune
