#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "machine/sm90/plan.hpp"
#include "protocol/counters.hpp"
#include "protocol/schedule.hpp"
#include "protocol/workspace.hpp"

// The kernel's shared memory. Plain structs, so that the host can hold sizeof to the plan's
// arithmetic.
namespace megamoe::sm90 {

inline constexpr int kFeedSlots =
    4;  // blocks that the weight loader may run ahead, and their headers
inline constexpr int kDispatchTeams = 2;
inline constexpr int kPullsInFlight = 2;

// One stage of the tile pipeline. Barriers lie in their stage: one address reaches all of it.
template <Plan kPlan>
struct Stage {
  alignas(1024) std::uint8_t tokens[kPlan.tile_bytes()];
  float token_scales[kPlan.block_m];  // linear 2 with kFloat8 only
  alignas(128) std::uint8_t weights[kPlan.weight_bytes()];
  alignas(16) std::uint64_t full;  // two arrivals (each loader, with its bytes)
  std::uint64_t empty;             // one arrival a math warp
};

// One block on its way from the weight loader, which walks the schedule, to those who work on it.
// No rows: there are no more blocks.
struct FeedSlot {
  Block block;
  alignas(8) std::uint64_t full;
  std::uint64_t empty;           // the token loader and every math warp
  std::uint32_t finished_warps;  // math warps that are done with the block; zero between blocks
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
  std::uint64_t first_epoch;
  std::uint64_t gate_seen;  // the rank's gate, as the relaying team saw it last
  RolesJoined roles_joined;
  std::uint32_t relay_has_left;  // the relaying team gave up; gate_seen is final
  std::uint32_t is_abandoned;    // the token loader gave up; no more blocks are to be fed
};

template <Plan kPlan>
struct SharedStorage {
  Stage<kPlan> stages[kPlan.stages];
  ActivationStaging<kPlan> activations;
  OutputStaging<kPlan> outputs;
  Control<kPlan> control;
};

// Behind SharedStorage lies what depends on the problem: a count for each expert, and the pulled
// rows.
struct SharedTail {
  int role_counts;  // offsets
  int pulls;
  int pull_bytes;  // of one row under way
  int end;
};

// Where a row under way is to go.
struct PullRecord {
  std::byte* row;
  float* weight;
  std::int32_t* exponent;
  std::uint32_t scales_shift;  // bytes in front of the first scale
  std::uint32_t weight_shift;
};

// A row under way: its record, the sixteen bytes around its routing weight, its codes, and its
// scales with up to 15 bytes on either side, since bulk copies want whole sixteens.
inline constexpr int kPulledWeight = sizeof(PullRecord);
inline constexpr int kPulledCodes = kPulledWeight + 16;
constexpr int pulled_scales(int hidden) {
  return align_up(kPulledCodes + hidden, 16);
}
constexpr int pull_bytes(int hidden) {
  return align_up(pulled_scales(hidden) + hidden / kGroup + 32, 128);
}

constexpr SharedTail shared_tail(int storage_bytes, const Problem& problem) {
  SharedTail tail{};
  tail.role_counts = align_up(storage_bytes, 128);
  tail.pulls = align_up(tail.role_counts + problem.experts * 4, 128);
  tail.pull_bytes = pull_bytes(problem.hidden);
  tail.end = tail.pulls + kDispatchTeams * kPullsInFlight * tail.pull_bytes;
  return tail;
}

}  // namespace megamoe::sm90
