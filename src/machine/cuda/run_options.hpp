#pragma once

#include <cstdint>

#include "protocol/call.hpp"

namespace megamoe::gpu {

// When one worker of a call reached what, in nanoseconds of the device's clock.
struct WorkerTimes {
  std::uint64_t start = 0;
  std::uint64_t milestones[4] = {};  // by Milestone
  std::uint64_t end = 0;             // its first math warp left
};

// What a launch is told besides the call.
struct RunOptions {
  std::uint64_t timeout_ms = 0;  // 0: waits are not bounded
  WorkerTimes* times = nullptr;  // [workers], or null: nothing is noted
};

// A kernel's one argument. `LinearWeights`: one linear's packed weights on the device, as its
// machine packs them.
template <class LinearWeights>
struct KernelArguments {
  LinearWeights linear1, linear2;  // first: they may hold tensor maps, which lie at multiples of 64
  Call call;
  RunOptions options;
};

}  // namespace megamoe::gpu
