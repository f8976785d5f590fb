#pragma once

#include <cuda_runtime_api.h>

namespace megamoe::gpu {

enum class CoResidence {
  kByDevice,  // a cooperative launch: refused where not all workers can run at once
  kByCaller,  // the caller leaves room: several ranks share the card, each with its part of the SMs
};

// One kernel, one CTA a worker.
struct LaunchShape {
  int workers = 1;
  int threads = 32;
  int shared_bytes = 0;
  int cluster = 1;  // CTAs of a cluster; `workers` is a multiple of it
};

// Throws Error(kUnsupportedMachine) where a CTA can't have that much shared memory, and
// Error(kRunFailed) with the runtime's words where it refuses. `args`: the kernel's one argument.
void launch(const void* kernel,
            const LaunchShape& shape,
            CoResidence co_residence,
            cudaStream_t stream,
            const void* args);

// Throws Error(kRunFailed): what was being done, and the runtime's reason.
void expect_success(cudaError_t error, const char* what);

}  // namespace megamoe::gpu
