#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "machine/cuda/swizzle.hpp"
#include "machine/sm90/operands.hpp"

// How a pool block of `block_m` rows lies in memory: step after step along K, each step a tile that
// a 1-D bulk copy brings to shared memory exactly as wgmma reads it (K-major, 128-byte swizzle).
// Whoever writes a row into the pool scatters it; nobody needs a tensor map.
namespace megamoe::sm90 {

using gpu::kChunkBytes;
using gpu::kSwizzleBytes;
using gpu::kSwizzleRows;

constexpr int element_bytes(Operands operands) {
  return operands == Operands::kFloat8 ? 1 : 2;
}

// Bytes of one row over all steps of a depth.
constexpr int pool_row_bytes(Operands operands, int depth) {
  return ceil_div(depth, kStepDepth) * kStepDepth * element_bytes(operands);
}

constexpr int token_tile_bytes(Operands operands, int block_m) {
  return block_m * kStepDepth * element_bytes(operands);
}

// Chunk 0..7 (kFloat8) or 0..15 (kBfloat16) of a row inside its tile; bf16 tiles are two panels of
// 64 values.
constexpr int token_chunk_offset(int block_m, int row, int chunk) {
  const int panel = chunk / kSwizzleRows;
  return panel * block_m * kSwizzleBytes + gpu::swizzled_offset(row, chunk % kSwizzleRows);
}

// A row of activations as linear 1 leaves it: E4M3 in order, then a UE8M0 scale for each 32.
struct ActivationRow {
  int depth;

  constexpr int scales() const { return align_up(depth, kChunkBytes); }
  constexpr int bytes() const { return scales() + align_up(depth / 32, kChunkBytes); }
};

}  // namespace megamoe::sm90
