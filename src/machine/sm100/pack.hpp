#pragma once

#include <cstddef>
#include <span>

#include "machine/cuda/canonical_linear.hpp"
#include "machine/cuda/packed_range.hpp"
#include "machine/sm100/weight_layout.hpp"

namespace megamoe::sm100 {

// Writes layout.code_bytes() of codes and layout.scale_bytes() of scales. Every linear fits: codes
// and scales stay as they are, NaN scales too.
void pack(const WeightLayout& layout,
          const gpu::CanonicalLinear& linear,
          std::span<std::byte> codes,
          std::span<std::byte> scales);

// pack() of these blocks of rows alone, into the place of the whole.
void pack_blocks(const WeightLayout& layout,
                 const gpu::CanonicalLinear& linear,
                 const gpu::PackedRange& blocks,
                 std::span<std::byte> codes,
                 std::span<std::byte> scales);

}  // namespace megamoe::sm100
