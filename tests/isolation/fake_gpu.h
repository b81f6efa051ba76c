// A stand-in for the GPU worker: the same protocol, without a GPU, and it breaks on demand. What a kernel
// does is written in its cubin: "hang at validate", "die at sample", "lost at prepare", "garbage at
// validate", "stop at begin"; anything else is a good kernel. Environment:
//   FAKE_GPU_CANARY  file; each canary takes its first line: a rate in TFLOP/s, "wrong", "hang" or "die". No
//   file or
//                    no line: 100
//   FAKE_GPU_LOG     file that gets "pid op begin|end nanoseconds" for each request
#pragma once

#include "gpu/channel.h"

namespace gemmtune {

int run_fake_gpu(Channel channel);

}  // namespace gemmtune
