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
  alignas(128) std::uint8_t weights[kPlan.weight_bytes()];
  alignas(16) std::uint64_t full;  // two arrivals (each loader, with its bytes)
  std::uint64_t empty;             // one arrival a math warp
};

// What the epilogues need to know of a block; the token loader brings it.
template <Plan kPlan>
struct HeaderSlot {
  alignas(16) SourceSlot source[kPlan.block_m];
  float routing_weight[kPlan.block_m];
  std::int32_t exponent[kPlan.block_m];  // of the row, to be added to the weights'
  std::int16_t bases[kBlockRows];        // of the block's weight rows
  std::uint32_t is_filled;               // 0: the call is being abandoned, nothing may be pushed
  alignas(8) std::uint64_t full;
  std::uint64_t empty;
};

// An epilogue's values on their way out, a chunk of tokens at a time. Each warpgroup has its own,
// so that none waits for another.
template <Plan kPlan>
struct EpilogueStaging {
  static constexpr int kTokens = epilogue_tokens(kPlan);
  union Chunk {
    float activations[kTokens][kGroup];            // linear 1: a slab's columns
    std::uint8_t outputs[kTokens][kSlabRows * 2];  // linear 2: bf16 rows of 64 channels
  };
  alignas(128) Chunk chunks[kPlan.math_warpgroups];
  // Where each token's row of linear 2's output begins, on its source rank.
  alignas(16) Bfloat16* destinations[kPlan.math_warpgroups][kPlan.block_m];
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
  EpilogueStaging<kPlan> staging;
  Control<kPlan> control;
};

// Behind SharedStorage lies what depends on the problem.
using gpu::PullRecord;
using gpu::SharedTail;
constexpr int longest_row(const Problem& problem) {
  return problem.hidden > problem.intermediate ? problem.hidden : problem.intermediate;
}
constexpr SharedTail shared_tail(int storage_bytes, const Problem& problem) {
  return gpu::shared_tail(storage_bytes, problem.experts, {kRowsUnderWay, longest_row(problem)});
}

}  // namespace megamoe::sm90
