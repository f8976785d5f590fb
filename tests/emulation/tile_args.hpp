#pragma once

#include <cstddef>

#include "machine/sm100/kernel_args.hpp"
#include "machine/sm100/plans.hpp"

namespace megamoe::test {

// The products of one pair of weight blocks with one pool block after another, as the megakernel
// does them. Layouts are the machine's: sm100::pack, sm100::token_chunk_offset and so on.
struct TileArgs {
  sm100::TensorMap codes;          // [256][depth] of 4 bits
  const std::byte* weight_scales;  // [2][steps][512]
  const std::byte* tokens;         // [tiles][steps][token_tile_bytes]
  const std::byte* token_scales;   // [tiles][steps][token_scale_bytes]
  float* sums;                     // [tiles][256][block_m]
  int tiles;
  int steps;
  int last_rows;  // of the last tile; the others are full

  constexpr int rows_of(int tile, int block_m) const {
    return tile + 1 == tiles ? last_rows : block_m;
  }
};

}  // namespace megamoe::test
