#pragma once

#include "machine/sm90/store_activations.cuh"
#include "machine/sm90/store_outputs.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm90 {

// What a measurement may put in the place of the release kernel's nothing.
struct NoProbe {
  MEGAMOE_DEVICE void multiplied(Phase) {}
  MEGAMOE_DEVICE void stored(Phase) {}
};

// One math warpgroup's walk over the blocks that load_weights feeds.
template <Plan kPlan, class Probe = NoProbe>
class MathRole {
 public:
  MEGAMOE_DEVICE MathRole(const Context<kPlan>& here,
                          Team<kPlan, Role::kCompute>& m,
                          Probe probe = {})
      : here_(here), m_(m), tiles_(here.stages()), feed_(here.feed()), probe_(probe) {}

  MEGAMOE_DEVICE void run() {
    for (;;) {
      feed_.wait_in_place();
      if (work().block().is_end()) return;
      MEGAMOE_NO_UNROLL
      for (int pass = 0; pass < kPlan.passes(); ++pass)
        one_pass(pass);
      finish();
      feed_.move_on();
    }
  }

 private:
  static constexpr int kSums = kPlan.block_m / 2;

  // The block under way. Opaque, so that nothing that derives from it lives through the main loop.
  MEGAMOE_DEVICE BlockWork<kPlan> work() const { return {here_, ptx::opaque(feed_.index())}; }

  // Both linears, by one main loop.
  MEGAMOE_DEVICE void one_pass(int pass) {
    float sum[kSums];
    const bool has_rows = multiply(pass, sum);
    const BlockWork<kPlan> work = this->work();
    const Phase phase = work.block().phase();
    probe_.multiplied(phase);
    // Headers come one for one with blocks, but later: behind the tokens' arrival. Nobody needs one
    // before the first epilogue of its block.
    wait_for_phase(work.header().slot + offsetof(HeaderSlot<kPlan>, full), feed_.parity());
    // Without its header nobody knows where the rows would go.
    if (has_rows && work.header().is_filled()) {
      if (phase == Phase::kLinear1)
        ActivationStore<kPlan>(work).push(slab_of(pass), sum);
      else
        OutputStore<kPlan>(work).push(slab_of(pass), sum);
    }
    probe_.stored(phase);
  }

  static MEGAMOE_DEVICE int slab_of(int pass) {
    return pass * kPlan.math_warpgroups + FragmentPlace::now().warpgroup;
  }

  // By the narrowest wgmma that takes all rows of the block: the last block of an expert has few.
  template <int kWidth = 0>
  MEGAMOE_DEVICE void multiply_rows(int rows, int steps, float (&sum)[kSums]) {
    constexpr int kTokens = kPlan.width(kWidth);
    if constexpr (kTokens < kPlan.block_m) {
      if (rows > kTokens) {
        multiply_rows<kWidth + 1>(rows, steps, sum);
        return;
      }
    }
    Multiply<kPlan, kTokens>(tiles_, FragmentPlace::now()).run(steps, sum);
  }

  // The sums of one slab. A warpgroup without rows in this pass lets the stages go by; without a
  // slab in the whole pass there are no stages.
  MEGAMOE_DEVICE bool multiply(int pass, float (&sum)[kSums]) {
    const BlockWork<kPlan> work = this->work();
    const BlockShape shape(here_.layout(work.block().phase()), work.block().n());
    const FragmentPlace place = FragmentPlace::now();
    if (pass * kPlan.math_warpgroups + place.warpgroup < shape.slabs) {
      multiply_rows(work.block().rows(), shape.steps, sum);
      return true;
    }
    if (pass * kPlan.math_warpgroups < shape.slabs)
      for (int step = 0; step < shape.steps; ++step)
        tiles_.release(tiles_.wait(), place.lane() == 0);
    return false;
  }

  MEGAMOE_DEVICE void finish() {
    const BlockWork<kPlan> work = this->work();
    gpu::finish_block(m_, here_.args.call, work.block());
    const bool is_speaker = FragmentPlace::now().lane() == 0;
    Consumer<HeaderSlot<kPlan>, kFeedSlots>::release(work.header().slot, is_speaker);
    feed_.release(work.block().slot, is_speaker);
  }

  const Context<kPlan>& here_;
  Team<kPlan, Role::kCompute>& m_;
  TileConsumer<kPlan> tiles_;
  FeedConsumer feed_;
  Probe probe_;
};

// Role: math
//   runs on   every math warpgroup, each warp a team of the protocol's compute role
//   for each  block that load_weights feeds
//   waits     gate 1; feed.full; stage.full of every step; header.full
//   does      64 weight rows times the block's tokens a warpgroup; linear 1: activation,
//             quantisation, activation rows; linear 2: bf16 rows to their slots on the source
//             ranks; after barrier 2 combine
//   signals   stage.empty, feed.empty, header.empty; ReadyBlocks or FinishedBlocks; rank barriers
template <Plan kPlan>
MEGAMOE_DEVICE void math(const Context<kPlan>& here, Team<kPlan, Role::kCompute>& m) {
  (void)compute(m, here.args.call, [&] {
    MathRole<kPlan>(here, m).run();
    m.decide_alone();
    return true;
  });
}

}  // namespace megamoe::sm90
