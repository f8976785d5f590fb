#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "machine/sm90/launch.hpp"

namespace megamoe::test {

// When one CTA of a spinning kernel ran, in nanoseconds of the device's clock.
struct SpinTimes {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// A kernel that keeps `workers` SMs to itself, with all of their shared memory, as a layer does.
struct Spin {
  int workers = 1;
  sm90::CoResidence co_residence = sm90::CoResidence::kByCaller;
  std::uint64_t nanoseconds = 0;        // how long, at most
  const std::uint32_t* stop = nullptr;  // memory that the device sees; not zero ends it; or null
  SpinTimes* times = nullptr;           // [workers] on the device
};

// Loads the kernel, so that a launch waits for nobody.
void prepare_spin();

// The launch's own answer: what is asked may be more than the card has.
cudaError_t launch_spin(const Spin& spin, cudaStream_t stream);

}  // namespace megamoe::test
