#pragma once

#include "machine/sm100/store_activations.cuh"
#include "machine/sm100/store_outputs.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm100 {

// One epilogue warp's walk over the blocks that load_weights feeds. Warpgroups take the chunks of a
// block in turn.
template <Plan kPlan>
class EpilogueRole {
 public:
  MEGAMOE_DEVICE EpilogueRole(const Context<kPlan>& here, Team<kPlan, Role::kCompute>& m)
      : here_(here),
        m_(m),
        at_(EpilogueThread::now()),
        feed_(here.feed()),
        headers_(here.headers()),
        accumulators_(here.accumulators()),
        tmem_(ptx::load_shared_u32(here.tmem_word())) {}

  MEGAMOE_DEVICE void run() {
    for (;;) {
      const FedBlock block{feed_.wait()};
      if (block.is_end()) return;
      const BlockWork<kPlan> work{here_, block, headers_.wait()};
      const std::uint32_t column = accumulators_.index() * kPlan.block_m;
      const std::uint32_t accumulator = accumulators_.wait();
      tcgen05::fence_after_being_told();
      if (work.header().is_filled == 0)  // nobody knows where the rows would go
        release(accumulator);
      else if (block.phase() == Phase::kLinear1)
        finish_sums<ActivationStore<kPlan>>(work, accumulator, tmem_ + column);
      else
        finish_sums<OutputStore<kPlan>>(work, accumulator, tmem_ + column);
      // Linear 2's loader reads the rows of linear 1 through the copy engine.
      ptx::fence_proxy_async();
      gpu::finish_block(m_, here_.args.call, block);
      headers_.release(work.header_slot, at_.lane() == 0);
      feed_.release(block.slot, at_.lane() == 0);
    }
  }

 private:
  // The accumulator is free as soon as this warp has read its last chunk.
  template <class Store>
  MEGAMOE_DEVICE void finish_sums(const BlockWork<kPlan>& work,
                                  std::uint32_t accumulator,
                                  std::uint32_t tmem) {
    constexpr int kStride = kPlan.epilogue_warpgroups * kChunkTokens;
    const int rows = work.block.rows();
    int first = at_.warpgroup * kChunkTokens;
    if (first >= rows) release(accumulator);
    Store store(work);
    MEGAMOE_NO_UNROLL
    for (; first < rows; first += kStride) {
      Chunk chunk(tmem + first, at_.warp());
      if (first + kStride >= rows) release(accumulator);
      store.store(first, chunk);
    }
  }

  // To the leader, whose multiply fills it again.
  MEGAMOE_DEVICE void release(std::uint32_t accumulator) const {
    __syncwarp();
    if (at_.lane() == 0)
      ptx::mbarrier_arrive_at(accumulator + offsetof(AccumulatorSlot, empty), kLeader);
  }

  const Context<kPlan>& here_;
  Team<kPlan, Role::kCompute>& m_;
  EpilogueThread at_;
  FeedConsumer feed_;
  HeaderConsumer<kPlan> headers_;
  AccumulatorConsumer accumulators_;
  std::uint32_t tmem_;
};

// Role: epilogue                                                            SM100
//   runs on   the epilogue warpgroups, each warp a team of the protocol's compute role
//   for each  block that load_weights feeds
//   waits     gate 1; feed.full; header.full; accumulator.full
//   does      linear 1: activation, quantisation, rows of linear 2's input; linear 2: bf16 rows to
//             their slots on the source ranks; after barrier 2 combine
//   signals   accumulator.empty of the leader, feed.empty, header.empty; ReadyBlocks or
//             FinishedBlocks; the rank barriers
template <Plan kPlan>
MEGAMOE_DEVICE void epilogue(const Context<kPlan>& here, Team<kPlan, Role::kCompute>& m) {
  (void)compute(m, here.args.call, [&] {
    EpilogueRole<kPlan>(here, m).run();
    m.decide_alone();
    return true;
  });
}

}  // namespace megamoe::sm100
