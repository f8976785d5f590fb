#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "machine/sm90/plan.hpp"

// The kernel's shared memory. Plain structs, so that the host can hold sizeof to the plan's arithmetic.
namespace megamoe::sm90 {

// One stage of the tile pipeline. Barriers lie in their stage: one address reaches all of it.
template <Plan kPlan>
struct Stage {
  alignas(1024) std::uint8_t tokens[kPlan.tile_bytes()];
  float token_scales[kPlan.block_m];  // linear 2 with kFloat8 only
  alignas(128) std::uint8_t weights[kPlan.weight_bytes()];
  alignas(16) std::uint64_t full;  // two arrivals (each loader, with its bytes)
  std::uint64_t empty;             // one arrival a math warp
};

// What an epilogue needs to know of a block's rows. Each math warpgroup fills and reads its own.
template <Plan kPlan>
struct RowHeaders {
  std::uint64_t destination[kPlan.block_m];  // linear 2: where the output row goes
  float routing_weight[kPlan.block_m];
  std::int32_t exponent[kPlan.block_m];  // linear 1: the row's, to be added to the weights'
};

// Linear 1's activations before they leave: E4M3 by groups of 32, then all four groups of a row are brought to
// one exponent. The pitch keeps the byte stores of a warp on different banks.
template <Plan kPlan>
struct ActivationStaging {
  static constexpr int kPitch = kStepDepth + 16;
  alignas(16) std::uint8_t codes[kPlan.block_m][kPitch];
  std::uint32_t largest[kPlan.math_warpgroups][kPlan.block_m][4];  // |a| of a warp's 8 columns, as bits
  std::int8_t exponents[kPlan.block_m][kGroupsPerStep];
};

// Linear 2's bf16 rows on their way out, a chunk of tokens at a time: 64 columns a warpgroup, 16-byte chunks
// swizzled by row as in the tiles.
template <Plan kPlan>
struct OutputStaging {
  static constexpr int kTokens = std::min(kPlan.block_m, 32);
  alignas(1024) std::uint8_t rows[kPlan.math_warpgroups][kTokens][kSlabRows * 2];
};

template <Plan kPlan>
struct SharedStorage {
  Stage<kPlan> stages[kPlan.stages];
  union Staging {  // every epilogue begins with a barrier of all math warpgroups, so lifetimes don't meet
    ActivationStaging<kPlan> activations;
    OutputStaging<kPlan> outputs;
  } staging;
  RowHeaders<kPlan> headers[kPlan.math_warpgroups];
};

}  // namespace megamoe::sm90
