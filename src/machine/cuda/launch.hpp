#pragma once

#include <cuda_runtime_api.h>

#include "machine/cuda/pull_place.hpp"

namespace megamoe::gpu {

enum class CoResidence {
  // A cooperative launch: refused where the card is too small for it alone, and otherwise run whole
  // or not yet. Launches of several ranks share a card as long as they fit together, which the
  // driver
  // doesn't check.
  kByDevice,
  kByCaller,  // a plain one, which may run in part while something else holds SMs
};

// One kernel that was built ahead of time. `kTail`: its machine's end of shared memory.
template <class Plan, SharedTail (*kTail)(int storage_bytes, const Problem& problem)>
struct KernelInstance {
  const void* kernel = nullptr;
  Plan plan{};
  int storage_bytes = 0;  // sizeof its SharedStorage

  int shared_bytes(const Problem& problem) const { return kTail(storage_bytes, problem).end; }
};

// One launch, one CTA a worker.
struct LaunchShape {
  int workers = 1;
  int threads = 32;
  int shared_bytes = 0;
  int cluster = 1;  // CTAs of a cluster; `workers` is a multiple of it
};

// Brings a kernel onto this thread's current card, if it isn't there. The first launch does it too,
// but may wait for kernels that run, which may wait for that launch.
void load_kernel(const void* kernel);

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
