#pragma once

#include "machine/cuda/packed_range.hpp"
#include "machine/sm90/pack.hpp"

namespace megamoe::sm90 {

// pack() of these slabs alone, into the place of the whole: what several threads may do at once.
void pack_slabs(const WeightLayout& layout,
                const CanonicalLinear& linear,
                const gpu::PackedRange& slabs,
                std::span<std::byte> packed,
                std::span<std::int16_t> bases);

}  // namespace megamoe::sm90
