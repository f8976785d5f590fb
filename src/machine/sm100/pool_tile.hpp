#pragma once

#include <cstdint>

#include "machine/sm100/scales.hpp"

// How a pool block of `block_m` rows lies in memory: step after step along K, each step a tile of
// 128-byte rows exactly as the tensor core reads it, so that 1-D bulk copies bring any run of eight
// rows; and, in an array of their own, the step's scales as the copy into tensor memory wants them.
// Whoever writes a row scatters it.
namespace megamoe::sm100 {

constexpr int steps_of(int depth) {
  return ceil_div(depth, kStepDepth);
}
// Bytes of one row over all steps, and of its share of the scales.
constexpr int pool_row_bytes(int depth) {
  return steps_of(depth) * kRowBytes;
}
constexpr int pool_scale_bytes(int depth) {
  return steps_of(depth) * kScaleBytesPerRowAndStep;
}

constexpr int token_tile_bytes(int block_m) {
  return block_m * kRowBytes;
}

// Bytes from the block's first to a row's chunk 0..7 of a step.
constexpr std::int64_t token_chunk_offset(int block_m, int step, int row, int chunk) {
  return std::int64_t{step} * token_tile_bytes(block_m) + gpu::swizzled_offset(row, chunk);
}
// Bytes from the block's first scale to those four of a row for a step.
constexpr std::int64_t token_scale_offset(int block_m, int step, int row) {
  return std::int64_t{step} * token_scale_bytes(block_m) + scale_word(row) * 4;
}

}  // namespace megamoe::sm100
