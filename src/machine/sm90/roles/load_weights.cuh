#pragma once

#include "machine/sm90/context.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm90 {

// Copies one block's weights, stage by stage, pass after pass.
template <Plan kPlan>
MEGAMOE_DEVICE void load_block_weights(const Context<kPlan>& here,
                                       const Block& block,
                                       TileProducer<kPlan>& tiles) {
  const WeightLayout layout = here.layout(block.phase);
  const BlockShape shape(layout, block.n);
  const LinearWeights& weights =
      block.phase == Phase::kLinear1 ? here.args.linear1 : here.args.linear2;
  const std::byte* of_block =
      weights.codes + block.expert * layout.bytes() + layout.offset(block.n, 0, 0);
  constexpr int kSlab = slab_bytes(kPlan.operands);
  for (int first = 0; first < shape.slabs; first += kPlan.math_warpgroups) {
    const int slabs = min(kPlan.math_warpgroups, shape.slabs - first);
    const std::byte* from = of_block + first * kSlab;
    for (int step = 0; step < shape.steps; ++step, from += shape.slabs * kSlab) {
      const std::uint32_t stage = tiles.acquire();
      tiles.commit(stage, slabs * kSlab);
      ptx::bulk_copy(
          stage + offsetof(Stage<kPlan>, weights), from, slabs * kSlab, tiles.full_barrier(stage));
    }
  }
}

// Role: load_weights
//   runs on   one warp per CTA, one lane of it once the gate is open
//   for each  block of the schedule, which it alone walks: it feeds the block to the other roles
//   waits     gate 1 (the counts); a free feed slot; an empty stage
//   does      bulk copies of a block's slabs, never gated by tokens
//   signals   feed.full; stage.full, by bytes; RolesJoined
template <Plan kPlan>
MEGAMOE_DEVICE void load_weights(const Context<kPlan>& here, Team<kPlan, Role::kLoadWeights>& m) {
  const Call& call = here.args.call;
  if (!wait_at_gate(m, call, 1)) return;
  if (!call_is_refused(call) && m.lane() == 0) {
    FeedProducer feed(here.feed());
    TileProducer<kPlan> tiles(here.stages());
    auto& control = here.control();
    auto next_slot = [&, at = 0](const Block& block) mutable {
      const std::uint32_t slot = feed.acquire();
      control.feed[at].block = block;
      feed.commit(slot);
      at = (at + 1) % kFeedSlots;
    };
    const volatile std::uint32_t& is_abandoned = control.words.is_abandoned;
    auto schedule = schedule_of(call, m.worker(), m.num_workers());
    for (Block block; is_abandoned == 0 && schedule.next(block);) {
      next_slot(block);
      load_block_weights(here, block, tiles);
    }
    next_slot(Block{});
  }
  m.decide_alone();
  join_roles(m);
  if (wait_at_gate(m, call, 2)) join_roles(m);
}

}  // namespace megamoe::sm90
