#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/pull_place.hpp"
#include "machine/cuda/worker_memory.hpp"
#include "machine/sm100/plan.hpp"

// The kernel's shared memory. Plain structs, so that the host can hold sizeof to the plan's
// arithmetic. Both CTAs of a pair have the same; an offset in one names the same thing in the
// other.
namespace megamoe::sm100 {

using gpu::FeedSlot;
using gpu::kFeedSlots;

inline constexpr int kDispatchTeams = 4;
inline constexpr int kPullsInFlight = 1;
inline constexpr int kRowsUnderWay = kDispatchTeams * kPullsInFlight;

// One stage of the tile pipeline, one CTA's half. Barriers lie in their stage: one address reaches
// all of it.
template <Plan kPlan>
struct Stage {
  alignas(1024) std::uint8_t tokens[kPlan.half_tile_bytes()];
  alignas(1024) std::uint8_t weights[kWeightTileBytes];
  alignas(128) std::uint8_t token_scales[token_scale_copies(kPlan.block_m) * kScaleCopyBytes];
  std::uint8_t weight_scales[kScaleCopyBytes];
  alignas(16) std::uint64_t full;  // two arrivals (each loader, with its bytes)
  std::uint64_t empty;             // one arrival: the pair's instructions have read both halves
  std::uint64_t peer_full;         // one arrival, in the leader: the other CTA's `full` is over
};

// One accumulator in tensor memory.
struct AccumulatorSlot {
  std::uint64_t full;   // one arrival: the block's last instruction is done
  std::uint64_t empty;  // every epilogue warp of both CTAs, in the leader
};

// Whose rows a block has: what the token loader brings for the epilogues.
template <Plan kPlan>
struct HeaderSlot {
  alignas(16) SourceSlot source[kPlan.block_m];
  float routing_weight[kPlan.block_m];
  std::uint32_t is_filled;  // 0: the call is being abandoned, nothing may be stored
  alignas(8) std::uint64_t full;
  std::uint64_t empty;
};

// Rows on their way out, a chunk of tokens at a time: linear 1's E4M3 codes, 64 columns, or linear
// 2's bf16 sums, 128 columns; 16-byte chunks are permuted against bank conflicts.
struct RowStaging {
  static constexpr int kOutputRowBytes = kBlockRows * 2;
  alignas(128) std::uint8_t rows[kChunkTokens * kOutputRowBytes];
  // |a| as bits: a token's largest over the 16 columns of each warp.
  alignas(16) std::uint32_t largest[kChunkTokens][4];
};

// Everything that roles share besides tiles.
template <Plan kPlan>
struct Control {
  AccumulatorSlot accumulators[kAccumulators];
  FeedSlot feed[kFeedSlots];
  HeaderSlot<kPlan> headers[kFeedSlots];
  std::uint64_t pulled[kDispatchTeams][kPullsInFlight];  // mbarriers
  gpu::WorkerWords words;
  std::uint32_t tmem;  // address of the CTA's columns
};

template <Plan kPlan>
struct SharedStorage {
  Stage<kPlan> stages[kPlan.stages];
  RowStaging staging[kPlan.epilogue_warpgroups];
  Control<kPlan> control;
};

// Behind SharedStorage lies what depends on the problem.
constexpr gpu::SharedTail shared_tail(int storage_bytes, const Problem& problem) {
  return gpu::shared_tail(storage_bytes, problem.experts, {kRowsUnderWay, problem.hidden});
}

// What a stage takes, by arithmetic; Stage is held to it.
constexpr int stage_bytes(const Plan& plan) {
  constexpr int kThreeBarriers = 24;
  const int weights_end = align_up(plan.half_tile_bytes(), 1024) + kWeightTileBytes;
  const int scales = token_scale_copies(plan.block_m) * kScaleCopyBytes + kScaleCopyBytes;
  return align_up(weights_end + scales + kThreeBarriers, 1024);
}

}  // namespace megamoe::sm100
