// The process that owns the CUDA context. It may hang or die with a bad kernel; its parent (gpu_executor.h)
// kills it at a deadline and starts another.
#pragma once

#include "gpu/channel.h"

namespace gemmtune {

/// Serves requests for device `index` until the channel closes.
int run_gpu_worker(Channel channel, int index);

}  // namespace gemmtune
