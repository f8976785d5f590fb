#pragma once

#include <cstdint>

namespace megamoe::sm90 {

// What the tensor cores multiply. Weights are E2M1 in memory either way and are decoded in
// registers.
enum class Operands : std::uint8_t {
  kFloat8,  // E4M3 wgmma, promoted to fp32 every 128 of K; weights keep a 4-bit exponent per group
  kBfloat16,  // bf16 wgmma on decoded values: exact up to fp32 accumulation
};

inline constexpr int kGroup = 32;       // values that share one exponent along K
inline constexpr int kSlabRows = 64;    // weight rows of one wgmma: one warpgroup's share of a tile
inline constexpr int kStepDepth = 128;  // K of one pipeline stage, and the interval of promotion
inline constexpr int kGroupsPerStep = kStepDepth / kGroup;
inline constexpr int kBlockSlabs =
    4;  // slabs of a block; with gate and up interleaved: 128 columns
inline constexpr int kBlockRows = kBlockSlabs * kSlabRows;

}  // namespace megamoe::sm90
