#include "tool/executor_for.h"

#include "emulator/emulator_executor.h"
#include "gpu/gpu_executor.h"

namespace gemmtune {

std::unique_ptr<Executor> executor_for(const Target& target) {
  if (target.gpu)
    return std::make_unique<GpuExecutor>(target.gpu->index,
                                         std::make_unique<GpuLock>(target.gpu->record.uuid));
  if (target.emulated) return std::make_unique<EmulatorExecutor>(*target.arch);
  return nullptr;
}

}  // namespace gemmtune
