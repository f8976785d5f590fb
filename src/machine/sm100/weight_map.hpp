#pragma once

#include "machine/cuda/tensor_map.hpp"
#include "machine/sm100/kernel_args.hpp"

namespace megamoe::sm100 {

// What the copy engine is to know of a linear's packed codes on the device, all local experts:
// tiles of 128 rows and 128 of K, spread to a byte a code. `codes` is aligned to 32 bytes.
gpu::TensorMapRequest weight_map_request(const Problem& problem, Phase phase, std::byte* codes);

// The encoded map, for the kernel's argument.
TensorMap to_argument(const CUtensorMap& map);

}  // namespace megamoe::sm100
