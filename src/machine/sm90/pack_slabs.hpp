#pragma once

#include "machine/sm90/pack.hpp"

namespace megamoe::sm90 {

// Some of a linear's slabs.
struct SlabRange {
  int first = 0;
  int count = 0;
};

// pack() of these slabs alone, into the place of the whole: what several threads may do at once.
void pack_slabs(const WeightLayout& layout,
                const CanonicalLinear& linear,
                const SlabRange& range,
                std::span<std::byte> packed,
                std::span<std::int16_t> bases);

}  // namespace megamoe::sm90
