#pragma once

#include "machine/sm90/store_activations.cuh"
#include "machine/sm90/store_outputs.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm90 {

// One math warpgroup's walk over the blocks that load_weights feeds.
template <Plan kPlan>
class MathRole {
 public:
  MEGAMOE_DEVICE MathRole(const Context<kPlan>& here, Team<kPlan, Role::kMath>& m, const MathPlace& place)
      : here_(here),
        m_(m),
        place_(place),
        tiles_(here.stages()),
        feed_(here.feed()),
        headers_(here.headers()) {}

  MEGAMOE_DEVICE bool run() {
    for (;;) {
      const std::uint32_t slot = feed_.wait();
      const Block block = block_in(here_, slot);
      __syncwarp();
      feed_.release(slot, place_.lane() == 0);
      if (is_end(block)) return true;
      if (block.phase == Phase::kLinear1)
        linear1(block);
      else
        linear2(block);
    }
  }

 private:
  static constexpr int kSums = kPlan.block_m / 2;

  MEGAMOE_DEVICE void linear1(const Block& block) {
    const WeightLayout layout = here_.layout(Phase::kLinear1);
    const std::uint32_t header = headers_.wait();
    const BlockWork<kPlan> work{
        here_, header_at(header), block, layout, BlockShape(layout, block)};
    ActivationStore<kPlan> store(work, place_);
    MEGAMOE_NO_UNROLL
    for (int pass = 0; pass < kPlan.passes(); ++pass) {
      const int slab = pass * kPlan.math_warpgroups + place_.warpgroup;
      float sum[kSums];
      const bool has_rows = multiply<Phase::kLinear1>(work, pass, slab, sum);
      // The staging's last readers are done; from the second pass on it is this block's.
      if (pass == 0) sync_math<kPlan>();
      if (has_rows)
        store.stage(slab, sum);
      else
        store.stage_nothing(slab);
    }
    sync_math<kPlan>();
    store.write_out();
    // Linear 2's loader reads the rows through the copy engine.
    ptx::fence_proxy_async();
    finish(block, header);
  }

  MEGAMOE_DEVICE void linear2(const Block& block) {
    const WeightLayout layout = here_.layout(Phase::kLinear2);
    const std::uint32_t header = headers_.wait();
    const BlockWork<kPlan> work{
        here_, header_at(header), block, layout, BlockShape(layout, block)};
    OutputStore<kPlan> store(work, place_);
    MEGAMOE_NO_UNROLL
    for (int pass = 0; pass < kPlan.passes(); ++pass) {
      const int slab = pass * kPlan.math_warpgroups + place_.warpgroup;
      float sum[kSums];
      const bool has_rows = multiply<Phase::kLinear2>(work, pass, slab, sum);
      sync_math<kPlan>();
      if (has_rows) store.push(slab, sum);
    }
    finish(block, header);
  }

  // The sums of one slab. A warpgroup without rows in this pass lets the stages go by; without a slab in the
  // whole pass there are no stages.
  template <Phase kPhase>
  MEGAMOE_DEVICE bool multiply(const BlockWork<kPlan>& work,
                               int pass,
                               int slab,
                               float (&sum)[kSums]) {
    if (slab < work.shape.slabs) {
      Multiply<kPlan, kPhase>(tiles_, place_).run(work.shape.steps, sum);
      return true;
    }
    if (pass * kPlan.math_warpgroups < work.shape.slabs)
      for (int step = 0; step < work.shape.steps; ++step)
        tiles_.release(tiles_.wait(), place_.lane() == 0);
    return false;
  }

  MEGAMOE_DEVICE const HeaderSlot<kPlan>& header_at(std::uint32_t slot) const {
    const auto* slots = reinterpret_cast<const std::byte*>(here_.control().headers);
    return *reinterpret_cast<const HeaderSlot<kPlan>*>(slots + (slot - here_.headers()));
  }

  // All warps' stores are behind them; one of them tells who waits for the block.
  MEGAMOE_DEVICE void finish(const Block& block, std::uint32_t header) {
    __syncwarp();
    headers_.release(header, place_.lane() == 0);
    sync_math<kPlan>();
    if (m_.team() == 0) signal_output(m_, here_.args.call, block);
  }

  const Context<kPlan>& here_;
  Team<kPlan, Role::kMath>& m_;
  MathPlace place_;
  TileConsumer<kPlan> tiles_;
  FeedConsumer feed_;
  HeaderConsumer<kPlan> headers_;
};

// Role: math
//   runs on   every math warpgroup, each warp a team of the protocol's compute role
//   for each  block that load_weights feeds
//   waits     gate 1; feed.full; header.full; stage.full of every step
//   does      64 weight rows times the block's tokens a warpgroup; linear 1: activation, quantisation, rows of
//             linear 2's input; linear 2: bf16 rows to their slots on the source ranks; after barrier 2 combine
//   signals   stage.empty, feed.empty, header.empty; ReadyBlocks or FinishedBlocks; the rank barriers
template <Plan kPlan>
MEGAMOE_DEVICE void math(const Context<kPlan>& here, Team<kPlan, Role::kMath>& m, const MathPlace& place) {
  (void)compute(m, here.args.call, [&] { return MathRole<kPlan>(here, m, place).run(); });
}

}  // namespace megamoe::sm90
