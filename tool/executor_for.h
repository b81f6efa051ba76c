// The device that a command runs kernels on.
#pragma once

#include <memory>

#include "search/executor.h"
#include "tool/options.h"

namespace gemmtune {

/// The GPU, with the lock that keeps other gemmtune processes from measuring beside us, or the emulator;
/// null for a target that is neither. Throws EnvironmentError if the GPU cannot be used.
std::unique_ptr<Executor> executor_for(const Target& target);

}  // namespace gemmtune
