#pragma once

#include "machine/cuda/swizzle.hpp"
#include "protocol/workspace.hpp"

// The extents of one matrix product on Blackwell. Two CTAs of a cluster work as a pair: one
// instruction multiplies 256 weight rows, 128 of each CTA (the A operand), with the tokens of one
// pool block, half of them from each CTA (the B operand); each CTA gets the sums of its own rows
// and all tokens. A block of the protocol is one CTA's 128 rows, so that the pair works on two
// neighbouring blocks.
namespace megamoe::sm100 {

inline constexpr int kPairCtas = 2;
inline constexpr int kBlockRows = 128;  // weight rows of a block: a CTA's lanes of tensor memory
inline constexpr int kPairRows = kPairCtas * kBlockRows;
inline constexpr int kBlockColumns = kBlockRows / 2;  // activations of a linear 1 block
inline constexpr int kStepDepth = 128;                // K of one pipeline stage
inline constexpr int kMmaDepth = kScaleGroup;         // K of one instruction, under one scale a row
inline constexpr int kMmasPerStep = kStepDepth / kMmaDepth;
inline constexpr int kTokenGranule = 16;  // tokens of an instruction come in multiples of it
inline constexpr int kRowBytes = gpu::kSwizzleBytes;  // of a tile row in shared memory: 128 bytes
static_assert(kRowBytes == kStepDepth);

// A tile of FP4 weights: in memory two codes a byte, in shared memory 16 codes in the first eight
// of each 16 bytes, as the copy engine spreads them.
inline constexpr int kWeightTileBytes = kBlockRows * kRowBytes;
inline constexpr int kPackedTileBytes = kWeightTileBytes / 2;

// Tokens that an instruction multiplies for a block with this many valid rows, and one CTA's half.
constexpr int mma_tokens(int rows) {
  return (rows + kTokenGranule - 1) / kTokenGranule * kTokenGranule;
}
constexpr int half_tokens(int rows) {
  return mma_tokens(rows) / kPairCtas;
}
static_assert(mma_tokens(1) == 16 && half_tokens(33) == 24);

}  // namespace megamoe::sm100
