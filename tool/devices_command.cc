// gemmtune devices
#include <fmt/format.h>

#include "gemm/error.h"
#include "gpu/device_info.h"
#include "gpu/nvrtc.h"
#include "kernel_templates/family.h"
#include "tool/command.h"

namespace gemmtune {
namespace {

int run() {
  GpuList list = list_gpus();
  if (list.driver_problem.empty()) {
    fmt::print("driver     CUDA {}.{}\n", list.driver_cuda_version / 1000,
               list.driver_cuda_version % 1000 / 10);
  } else {
    fmt::print("driver     none: {}\n", list.driver_problem);
  }
  std::string runs;
  for (const GpuInfo& gpu : list.gpus) {
    fmt::print("cuda:{}     {}, compute capability {}.{}, {} SMs, {} GiB, L2 {} MiB, {}\n", gpu.index,
               gpu.record.name, gpu.cc_major, gpu.cc_minor, gpu.record.sm_count, gpu.memory_bytes >> 30,
               gpu.record.l2_bytes >> 20, gpu.record.uuid);
    if (gpu.record.arch.empty()) {
      fmt::print(
          "           no kernel family runs on compute capability {}.{}: it has neither tcgen05 nor wgmma\n",
          gpu.cc_major, gpu.cc_minor);
    } else {
      fmt::print("           runs {} ({})\n", gpu.record.arch, family_for(find_arch(gpu.record.arch)).name());
      runs += (runs.empty() ? "" : ", ") + fmt::format("{} on cuda:{}", gpu.record.arch, gpu.index);
    }
  }
  bool can_compile = true;
  try {
    Nvrtc nvrtc;
    std::string targets;
    for (const ArchSpec& arch : archs())
      if (nvrtc.supports(std::string(arch.name)))
        targets += (targets.empty() ? "" : ", ") + std::string(arch.name);
    fmt::print("NVRTC      {} from {}, compiles {}\n", nvrtc.version(), nvrtc.path(), targets);
  } catch (const EnvironmentError& error) {
    can_compile = false;
    fmt::print("NVRTC      none: {}\n", error.what());
  }
  std::string cublaslt = find_cublaslt(), nvml = find_nvml();
  fmt::print("cuBLASLt   {}\n", cublaslt.empty() ? "none" : cublaslt);
  fmt::print("NVML       {}\n", nvml.empty() ? "none: samples carry no clock, power or temperature" : nvml);
  fmt::print("\n");
  fmt::print("compile    {}\n", can_compile
                                    ? "yes: gemmtune compile, gemmtune sweep --device none"
                                    : "no: without NVRTC only shapes, space, best, export and db work");
  fmt::print("emulate    {}\n", can_compile
                                    ? "yes: sweep without a GPU, or --device emulator, validates on the CPU"
                                    : "own PTX only: gemmtune emulate FILE.ptx");
  fmt::print("measure    {}\n", !runs.empty() && can_compile ? runs
                                : runs.empty()               ? "no: no GPU that a kernel family runs on"
                                                             : "no: NVRTC is missing");
  return kDone;
}

}  // namespace

void declare_devices(CLI::App& app, int& status) {
  app.callback([&status] { status = run(); });
}

}  // namespace gemmtune
