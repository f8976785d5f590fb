#pragma once

#include "machine/sm90/store_activations.cuh"
#include "machine/sm90/store_outputs.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm90 {

// What a measurement may put in the place of the release kernel's nothing.
struct NoProbe {
  static constexpr bool kStores = true;  // false: sums are dropped, the main loop runs alone
  MEGAMOE_DEVICE void multiplied(Phase) {}
  MEGAMOE_DEVICE void stored(Phase) {}
};

// One math warpgroup's walk over the blocks that load_weights feeds.
template <Plan kPlan, class Probe = NoProbe>
class MathRole {
 public:
  static constexpr bool kStores = Probe::kStores;

  MEGAMOE_DEVICE MathRole(const Context<kPlan>& here,
                          Team<kPlan, Role::kMath>& m,
                          const MathPlace& place,
                          Probe probe = {})
      : here_(here),
        m_(m),
        place_(place),
        tiles_(here.stages()),
        feed_(here.feed()),
        headers_(here.headers()),
        sets_(here.activations()),
        probe_(probe) {}

  MEGAMOE_DEVICE void run() {
    for (;;) {
      const FedBlock block{feed_.wait()};
      if (block.is_end()) return;
      // Opaque, so that what derives from the thread is computed in each block and not kept from block to block.
      const MathPlace place{place_.warpgroup,
                            static_cast<int>(ptx::opaque(static_cast<unsigned>(place_.thread)))};
      const BlockWork<kPlan> work{here_, block, {headers_.wait()}, place};
      if (block.phase() == Phase::kLinear1)
        linear1(work);
      else
        linear2(work);
      finish(work);
    }
  }

 private:
  static constexpr int kSums = kPlan.block_m / 2;

  MEGAMOE_DEVICE void linear1(const BlockWork<kPlan>& work) {
    ActivationStore<kPlan> store(work, sets_.slot());
    MEGAMOE_NO_UNROLL
    for (int pass = 0; pass < kPlan.passes(); ++pass) {
      const int slab = pass * kPlan.math_warpgroups + place_.warpgroup;
      float sum[kSums];
      const bool has_rows = multiply<Phase::kLinear1>(work, pass, slab, sum);
      probe_.multiplied(Phase::kLinear1);
      if constexpr (!kStores) continue;
      if (pass == 0) sets_.wait_until_empty();
      if (has_rows)
        store.stage(slab, sum);
      else
        store.stage_nothing(slab);
      probe_.stored(Phase::kLinear1);
    }
    if constexpr (!kStores) return;
    if (store.is_last()) store.write_out();
    sets_.advance();
  }

  MEGAMOE_DEVICE void linear2(const BlockWork<kPlan>& work) {
    OutputStore<kPlan> store(work);
    MEGAMOE_NO_UNROLL
    for (int pass = 0; pass < kPlan.passes(); ++pass) {
      const int slab = pass * kPlan.math_warpgroups + place_.warpgroup;
      float sum[kSums];
      const bool has_rows = multiply<Phase::kLinear2>(work, pass, slab, sum);
      probe_.multiplied(Phase::kLinear2);
      // Without its header nobody knows where the rows would go.
      if (kStores && has_rows && work.header.is_filled()) store.push(slab, sum);
      probe_.stored(Phase::kLinear2);
    }
  }

  // The sums of one slab. A warpgroup without rows in this pass lets the stages go by; without a slab in the
  // whole pass there are no stages.
  template <Phase kPhase>
  MEGAMOE_DEVICE bool multiply(const BlockWork<kPlan>& work,
                               int pass,
                               int slab,
                               float (&sum)[kSums]) {
    const BlockShape shape(here_.layout(kPhase), work.block.n());
    if (slab < shape.slabs) {
      Multiply<kPlan, kPhase>(tiles_, work.place).run(shape.steps, sum);
      if constexpr (!kStores)
        for (float& value : sum)
          ptx::pin(value);
      return true;
    }
    if (pass * kPlan.math_warpgroups < shape.slabs)
      for (int step = 0; step < shape.steps; ++step)
        tiles_.release(tiles_.wait(), place_.lane() == 0);
    return false;
  }

  // This warp's stores are behind it. The last of the CTA's math warps tells who waits for the block; the others go
  // on to the next one.
  MEGAMOE_DEVICE void finish(const BlockWork<kPlan>& work) {
    constexpr std::uint32_t kWarps = kPlan.math_warpgroups * 4;
    const std::uint32_t counter = work.block.slot + offsetof(FeedSlot, finished_warps);
    __syncwarp();
    std::uint32_t before = 0;
    if (place_.lane() == 0) before = ptx::add_shared_u32(counter, 1);
    before = __shfl_sync(0xFFFFFFFFU, before, 0);
    if (before == kWarps - 1) {
      signal_output(m_, here_.args.call, work.block.whole());
      if (place_.lane() == 0) ptx::store_shared_u32(counter, 0);
    }
    __syncwarp();
    headers_.release(work.header.slot, place_.lane() == 0);
    feed_.release(work.block.slot, place_.lane() == 0);
  }

  const Context<kPlan>& here_;
  Team<kPlan, Role::kMath>& m_;
  MathPlace place_;
  TileConsumer<kPlan> tiles_;
  FeedConsumer feed_;
  HeaderConsumer<kPlan> headers_;
  ReusedSlots<ActivationSet<kPlan>, ActivationStaging<kPlan>::kSets> sets_;
  Probe probe_;
};

// Role: math
//   runs on   every math warpgroup, each warp a team of the protocol's compute role
//   for each  block that load_weights feeds
//   waits     gate 1; feed.full; header.full; stage.full of every step
//   does      64 weight rows times the block's tokens a warpgroup; linear 1: activation, quantisation, rows of
//             linear 2's input; linear 2: bf16 rows to their slots on the source ranks; after barrier 2 combine
//   signals   stage.empty, feed.empty, header.empty; ReadyBlocks or FinishedBlocks; the rank barriers
template <Plan kPlan>
MEGAMOE_DEVICE void math(const Context<kPlan>& here,
                         Team<kPlan, Role::kMath>& m,
                         const MathPlace& place) {
  (void)compute(m, here.args.call, [&] {
    MathRole<kPlan>(here, m, place).run();
    m.decide_alone();
    return true;
  });
}

}  // namespace megamoe::sm90
