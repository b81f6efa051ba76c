// Shared by the GPU tests: a device that a family runs on, or a skip.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "gpu/cuda_driver.h"
#include "gpu/device_info.h"
#include "gpu/gpu_executor.h"
#include "gpu/nvrtc.h"
#include "kernel_templates/render.h"

namespace gemmtune {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const GpuInfo& gpu : list_gpus().gpus) {
      if (gpu.record.arch.empty()) continue;
      gpu_ = gpu;
      arch_ = &find_arch(gpu.record.arch);
      family_ = &family_for(*arch_);
      return;
    }
    GTEST_SKIP() << "no GPU that a kernel family runs on";
  }

  /// Makes this process's context of gpu_ current: for tests that launch by themselves, without a worker.
  void make_context() const {
    const CudaDriver& cuda = CudaDriver::get();
    CUdevice device;
    CUcontext context;
    ASSERT_EQ(cuda.DeviceGet(&device, gpu_.index), CUDA_SUCCESS);
    ASSERT_EQ(cuda.DevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuda.CtxSetCurrent(context), CUDA_SUCCESS);
  }

  Variant variant(const Config& config, const ProblemClass& cls = {}) const {
    return {family_, arch_, cls, config};
  }
  Variant variant(std::string_view config, const ProblemClass& cls = {}) const {
    return variant(parse_config(family_->knobs(), config), cls);
  }

  /// Compiles `source` (by default the variant's own) here, in this process.
  CompiledKernel compile(const Variant& v, std::string source = "") const {
    static const Nvrtc nvrtc;
    CompileResult result =
        nvrtc.compile({"", source.empty() ? render(v) : source, std::string(v.arch->name)});
    EXPECT_TRUE(result.ok) << result.log;
    CompiledKernel kernel;
    kernel.ok = result.ok;
    kernel.cubin = result.cubin;
    kernel.evidence = result.evidence;
    return kernel;
  }

  GpuInfo gpu_;
  const ArchSpec* arch_ = nullptr;
  const KernelFamily* family_ = nullptr;
};

/// Replaces the only occurrence of `what`.
inline std::string replaced(std::string text, std::string_view what, std::string_view with) {
  size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  EXPECT_EQ(text.find(what, at + 1), std::string::npos) << "twice: " << what;
  return text.replace(at, what.size(), with);
}

}  // namespace gemmtune
