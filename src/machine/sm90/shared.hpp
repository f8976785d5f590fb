#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "machine/cuda/pull_place.hpp"
#include "machine/cuda/worker_memory.hpp"
#include "machine/sm90/plan.hpp"
#include "protocol/workspace.hpp"

// The kernel's shared memory. Plain structs, so that the host can hold sizeof to the plan's
// arithmetic.
namespace megamoe::sm90 {

using gpu::FeedSlot;
using gpu::kFeedSlots;
inline constexpr int kDispatchTeams = 2;
inline constexpr int kPullsInFlight = 2;
inline constexpr int kRowsUnderWay = kDispatchTeams * kPullsInFlight;

// One stage of the tile pipeline. Barriers lie in their stage: one address reaches all of it.
template <Plan kPlan>
struct Stage {
  alignas(1024) std::uint8_t tokens[kPlan.tile_bytes()];
  float token_scales[kPlan.block_m];  // linear 2 with kFloat8 only
  alignas(128) std::uint8_t weights[kPlan.weight_bytes()];
  alignas(16) std::uint64_t full;  // two arrivals (each loader, with its bytes)
  std::uint64_t empty;             // one arrival a math warp
};

// What the epilogues need to know of a block; the token loader brings it.
template <Plan kPlan>
struct HeaderSlot {
  alignas(16) SourceSlot source[kPlan.block_m];
  float routing_weight[kPlan.block_m];
  std::int32_t exponent[kPlan.block_m];  // of the row, to be added to the weights'; linear 1 only
  std::int16_t bases[kBlockRows];        // of the block's weight rows
  std::uint32_t is_filled;               // 0: the call is being abandoned, nothing may be pushed
  alignas(8) std::uint64_t full;
  std::uint64_t empty;
};

// Linear 1's activations before they leave: E4M3 by groups of 32, then all four groups of a row are
// brought to one exponent. Warpgroups don't wait for each other: each stages its slabs and goes on,
// and the last one stores the set. Two sets where they fit. The pitch keeps the byte stores of a
// warp on different banks.
template <Plan kPlan>
struct ActivationSet {
  static constexpr int kPitch = kStepDepth + 16;
  // Of a group that asks nothing of its range: zeros, or NaN codes. Under every exponent there is.
  static constexpr std::int8_t kNothingAsked = -128;
  alignas(16) std::uint8_t codes[kPlan.block_m][kPitch];
  alignas(4) std::int8_t exponents[kPlan.block_m][kGroupsPerStep];
  alignas(8) std::uint64_t empty;  // one arrival: its last reader is done
  std::uint32_t staged;            // warpgroups that have staged their slabs; zero between blocks
};

template <Plan kPlan>
struct ActivationStaging {
  static constexpr int kSets = kPlan.block_m <= 64 ? 2 : 1;
  ActivationSet<kPlan> sets[kSets];
  // |a| as bits: a token's largest over the 8 columns of each warp of the warpgroup.
  alignas(16) std::uint32_t largest[kPlan.math_warpgroups][kPlan.block_m][4];
  std::uint32_t is_last[kPlan.math_warpgroups];  // whether the warpgroup staged last
};

// Linear 2's bf16 rows on their way out, a chunk of tokens at a time: 64 columns a warpgroup,
// 16-byte chunks swizzled by row as in the tiles.
template <Plan kPlan>
struct OutputStaging {
  static constexpr int kTokens = epilogue_tokens(kPlan);
  alignas(128) std::uint8_t rows[kPlan.math_warpgroups][kTokens][kSlabRows * 2];
};

// What the roles of a CTA share besides tiles.
template <Plan kPlan>
struct Control {
  FeedSlot feed[kFeedSlots];
  HeaderSlot<kPlan> headers[kFeedSlots];
  std::uint64_t pulled[kDispatchTeams][kPullsInFlight];  // mbarriers
  gpu::WorkerWords words;
};

template <Plan kPlan>
struct SharedStorage {
  Stage<kPlan> stages[kPlan.stages];
  ActivationStaging<kPlan> activations;
  OutputStaging<kPlan> outputs;
  Control<kPlan> control;
};

// Behind SharedStorage lies what depends on the problem.
using gpu::PullRecord;
using gpu::SharedTail;
constexpr SharedTail shared_tail(int storage_bytes, const Problem& problem) {
  return gpu::shared_tail(storage_bytes, problem, kRowsUnderWay);
}

}  // namespace megamoe::sm90
