#pragma once

#include "machine/sm100/context.cuh"
#include "machine/sm100/descriptor.hpp"
#include "machine/sm100/tcgen05.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm100 {

// The leader's walk over the blocks that its weight loader feeds: for each step of K the scales of
// both operands go to tensor memory, then four instructions multiply 32 of K each.
template <Plan kPlan>
class Multiply {
 public:
  MEGAMOE_DEVICE explicit Multiply(const Context<kPlan>& here)
      : here_(here),
        feed_(here.feed()),
        tiles_(here.stages()),
        accumulators_(here.accumulators()),
        tmem_(ptx::load_shared_u32(here.tmem_word())) {}

  MEGAMOE_DEVICE void run(int lane) {
    for (;;) {
      const FedBlock block{feed_.wait()};
      if (block.is_end()) return;
      multiply(block);
      feed_.release(block.slot, lane == 0);
    }
  }

 private:
  static constexpr TmemColumns kColumns = kPlan.columns();

  MEGAMOE_DEVICE void multiply(const FedBlock& block) {
    const std::uint32_t instruction = instruction_descriptor(mma_tokens(block.rows()));
    const int steps = here_.layout(block.phase()).steps();
    const std::uint32_t sums = tmem_ + accumulators_.index() * kPlan.block_m;
    const std::uint32_t accumulator = accumulators_.acquire();
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t parity = tiles_.parity();
      const std::uint32_t stage = tiles_.wait();
      wait_for_phase_of_cluster(stage + offsetof(Stage<kPlan>, peer_full), parity);
      // After the loads of the block that left the accumulator, and after both halves' copies.
      tcgen05::fence_after_being_told();
      if (tcgen05::elected()) {
        issue(stage, sums, instruction, step != 0);
        tcgen05::commit_to_pair(stage + offsetof(Stage<kPlan>, empty));
      }
      __syncwarp();
    }
    if (tcgen05::elected()) tcgen05::commit_to_pair(accumulator + offsetof(AccumulatorSlot, full));
    __syncwarp();
  }

  MEGAMOE_DEVICE void issue(std::uint32_t stage,
                            std::uint32_t sums,
                            std::uint32_t instruction,
                            bool adds) const {
    using S = Stage<kPlan>;
    const tcgen05::ScaleColumns scales{tmem_ + kColumns.weight_scales(),
                                       tmem_ + kColumns.token_scales()};
    tcgen05::copy_scales(scales.weights, scale_descriptor(stage + offsetof(S, weight_scales)));
    MEGAMOE_UNROLL
    for (int i = 0; i < token_scale_copies(kPlan.block_m); ++i)
      tcgen05::copy_scales(
          scales.tokens + i * kScaleCopyColumns,
          scale_descriptor(stage + offsetof(S, token_scales) + i * kScaleCopyBytes));
    const std::uint64_t weights = tile_descriptor(stage + offsetof(S, weights));
    const std::uint64_t tokens = tile_descriptor(stage + offsetof(S, tokens));
    MEGAMOE_UNROLL
    for (int k = 0; k < kMmasPerStep; ++k)
      tcgen05::multiply(sums,
                        weights + k * kDescriptorNextK,
                        tokens + k * kDescriptorNextK,
                        with_scale_byte(instruction, k),
                        scales,
                        adds || k != 0);
  }

  const Context<kPlan>& here_;
  FeedConsumer feed_;
  TileConsumer<kPlan> tiles_;
  AccumulatorProducer accumulators_;
  std::uint32_t tmem_;
};

// The other CTA of the pair has the same blocks in the same order: it tells the leader of each of
// its stages that is full. The leader's commit empties it.
template <Plan kPlan>
MEGAMOE_DEVICE void tell_leader(const Context<kPlan>& here, int lane) {
  FeedConsumer feed(here.feed());
  TileConsumer<kPlan> tiles(here.stages());
  for (;;) {
    const FedBlock block{feed.wait()};
    if (block.is_end()) return;
    const int steps = here.layout(block.phase()).steps();
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t stage = tiles.wait();
      if (lane == 0) ptx::mbarrier_arrive_at(stage + offsetof(Stage<kPlan>, peer_full), kLeader);
    }
    feed.release(block.slot, lane == 0);
  }
}

// Role: multiply                                                            SM100
//   runs on   one warp per CTA; the leader's issues, one thread at a time, for both CTAs
//   for each  block that load_weights feeds
//   waits     gate 1; feed.full; an empty accumulator; stage.full of both CTAs
//   does      copies scales to tensor memory, multiplies 256 weight rows x the block's tokens
//   signals   stage.empty and accumulator.full of both CTAs, by commit; feed.empty
//             in the other CTA: stage.peer_full of the leader
template <Plan kPlan>
MEGAMOE_DEVICE void multiply(const Context<kPlan>& here, Team<kPlan, Role::kMultiply>& m) {
  const Call& call = here.args.call;
  if (!wait_at_gate(m, call, 1) || call_is_refused(call)) return;
  if (ptx::cluster_rank() == kLeader)
    Multiply<kPlan>(here).run(m.lane());
  else
    tell_leader(here, m.lane());
}

}  // namespace megamoe::sm100
