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

}  // namespace megamoe
