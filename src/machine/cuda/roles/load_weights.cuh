#pragma once

#include "machine/cuda/context.cuh"
#include "protocol/forward.hpp"

namespace megamoe::gpu {

// Role: load_weights                                                        SM90, SM100
//   runs on   one warp per CTA, one lane of it once the gate is open
//   for each  block of the schedule, which it alone walks: it feeds the block to the other roles
//   waits     gate 1 (the counts); a free feed slot; an empty stage
//   does      copies of a block's weights, never gated by tokens
//   signals   feed.full; stage.full, by bytes; RolesJoined
//
// `Source::load(block)` copies the weights of a block, stage by stage. `Source::kMayStop`: whether
// the CTA may end its blocks alone once the token loader has given up; one of a pair may not, as
// the other's blocks need its half, nor may it go before its stages are drained.
template <class Source, class Context, class M>
MEGAMOE_DEVICE void load_weights(const Context& here, M& m) {
  const Call& call = here.args.call;
  if (!wait_at_gate(m, call, 1)) return;
  if (!call_is_refused(call) && m.lane() == 0) {
    FeedProducer feed(here.feed());
    Source source(here);
    auto next_slot = [&, at = 0](const Block& block) mutable {
      const std::uint32_t slot = feed.acquire();
      here.control().feed[at].block = block;
      feed.commit(slot);
      at = (at + 1) % kFeedSlots;
    };
    const volatile std::uint32_t& is_abandoned = here.words().is_abandoned;
    auto schedule = schedule_of(call, m.worker(), m.num_workers());
    for (Block block; !(Source::kMayStop && is_abandoned != 0) && schedule.next(block);) {
      next_slot(block);
      source.load(block);
    }
    next_slot(Block{});
    if constexpr (!Source::kMayStop) source.drain();
  }
  m.decide_alone();
  join_roles(m);
  if (wait_at_gate(m, call, 2)) join_roles(m);
}

}  // namespace megamoe::gpu
