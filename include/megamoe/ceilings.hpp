#pragma once

#include "megamoe/layer_options.hpp"

namespace megamoe {

/// What this computer can do at most, measured now with the threads that a layer would use: what a
/// layer's speed is held against. Takes about a second.
struct Ceilings {
  double read_bytes_per_second = 0;  ///< from memory, far more than the caches hold
  double flops_per_second = 0;       ///< multiply and add on registers, of the instruction set
};

/// Of the CPU machine, with `threads` threads. Throws as Layer does for an instruction set that is
/// not here.
Ceilings measure_ceilings(const LayerOptions& options, int threads);

/// Of one H200, as measured once (docs/tuning.md): packed weights through 1-D bulk copies, and the
/// FP8 main loop with its decoding and promotion.
inline constexpr double kH200ReadBytesPerSecond = 4.56e12;
inline constexpr double kH200FlopsPerSecond = 1.442e15;
constexpr Ceilings ceilings_of_h200() {
  return {.read_bytes_per_second = kH200ReadBytesPerSecond,
          .flops_per_second = kH200FlopsPerSecond};
}

/// Of one B200, from its data sheet: nothing was measured on one.
inline constexpr double kB200ReadBytesPerSecond = 8e12;
inline constexpr double kB200FlopsPerSecond = 4.5e15;
constexpr Ceilings ceilings_of_b200() {
  return {.read_bytes_per_second = kB200ReadBytesPerSecond,
          .flops_per_second = kB200FlopsPerSecond};
}

}  // namespace megamoe
