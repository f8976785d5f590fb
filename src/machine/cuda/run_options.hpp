#pragma once

#include <cstdint>

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

}  // namespace megamoe::gpu
