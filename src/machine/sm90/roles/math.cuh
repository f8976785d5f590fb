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
      : here_(here),
        m_(m),
        tiles_(here.stages()),
        feed_(here.feed()),
        sets_(here.activations()),
        probe_(probe) {}

  MEGAMOE_DEVICE void run() {
    for (;;) {
      const BlockWork<kPlan> work{here_, feed_.index()};
      feed_.wait();
      if (work.block().is_end()) return;
      if (work.block().phase() == Phase::kLinear1)
        linear1(work);
      else
        linear2(work);
      finish(work);
    }
  }

 private:
  static constexpr int kSums = kPlan.block_m / 2;
  using Activations = ActivationStore<kPlan>;

  MEGAMOE_DEVICE void linear1(const BlockWork<kPlan>& work) {
    MEGAMOE_NO_UNROLL
    for (int pass = 0; pass < kPlan.passes(); ++pass) {
      float sum[kSums];
      const bool has_rows = multiply<Phase::kLinear1>(work, pass, sum);
      probe_.multiplied(Phase::kLinear1);
      if (pass == 0) wait_for_header(work);
      if (pass == 0) sets_.wait_until_empty();
      if (has_rows)
        Activations(work, sets_.slot()).stage(slab_of(pass), sum);
      else
        Activations(work, sets_.slot()).stage_nothing(slab_of(pass));
      probe_.stored(Phase::kLinear1);
    }
    Activations store(work, sets_.slot());
    if (store.is_last()) store.write_out();
    sets_.advance();
  }

  MEGAMOE_DEVICE void linear2(const BlockWork<kPlan>& work) {
    MEGAMOE_NO_UNROLL
    for (int pass = 0; pass < kPlan.passes(); ++pass) {
      float sum[kSums];
      const bool has_rows = multiply<Phase::kLinear2>(work, pass, sum);
      probe_.multiplied(Phase::kLinear2);
      if (pass == 0) wait_for_header(work);
      // Without its header nobody knows where the rows would go.
      if (has_rows && work.header().is_filled()) OutputStore<kPlan>(work).push(slab_of(pass), sum);
      probe_.stored(Phase::kLinear2);
    }
  }

  // Headers come one for one with blocks, but later: behind the tokens' arrival. Nobody needs one
  // before the first epilogue of its block. The feed's cursor has gone on by one slot since.
  MEGAMOE_DEVICE void wait_for_header(const BlockWork<kPlan>& work) const {
    const bool has_wrapped = work.index == kFeedSlots - 1;
    wait_for_phase(work.header().slot + offsetof(HeaderSlot<kPlan>, full),
                   feed_.parity() ^ (has_wrapped ? 1 : 0));
  }

  static MEGAMOE_DEVICE int slab_of(int pass) {
    return pass * kPlan.math_warpgroups + FragmentPlace::now().warpgroup;
  }

  // The sums of one slab. A warpgroup without rows in this pass lets the stages go by; without a
  // slab in the whole pass there are no stages.
  template <Phase kPhase>
  MEGAMOE_DEVICE bool multiply(const BlockWork<kPlan>& work, int pass, float (&sum)[kSums]) {
    const BlockShape shape(here_.layout(kPhase), work.block().n());
    const FragmentPlace place = FragmentPlace::now();
    if (pass * kPlan.math_warpgroups + place.warpgroup < shape.slabs) {
      Multiply<kPlan, kPhase>(tiles_, place).run(shape.steps, sum);
      return true;
    }
    if (pass * kPlan.math_warpgroups < shape.slabs)
      for (int step = 0; step < shape.steps; ++step)
        tiles_.release(tiles_.wait(), place.lane() == 0);
    return false;
  }

  MEGAMOE_DEVICE void finish(const BlockWork<kPlan>& work) {
    gpu::finish_block(m_, here_.args.call, work.block());
    const bool is_speaker = FragmentPlace::now().lane() == 0;
    Consumer<HeaderSlot<kPlan>, kFeedSlots>::release(work.header().slot, is_speaker);
    feed_.release(work.block().slot, is_speaker);
  }

  const Context<kPlan>& here_;
  Team<kPlan, Role::kCompute>& m_;
  TileConsumer<kPlan> tiles_;
  FeedConsumer feed_;
  ReusedSlots<ActivationSet<kPlan>, ActivationStaging<kPlan>::kSets> sets_;
  Probe probe_;
};

// Role: math
//   runs on   every math warpgroup, each warp a team of the protocol's compute role
//   for each  block that load_weights feeds
//   waits     gate 1; feed.full; stage.full of every step; header.full
//   does      64 weight rows times the block's tokens a warpgroup; linear 1: activation,
//   quantisation, rows of
//             linear 2's input; linear 2: bf16 rows to their slots on the source ranks; after
//             barrier 2 combine
//   signals   stage.empty, feed.empty, header.empty; ReadyBlocks or FinishedBlocks; the rank
//   barriers
template <Plan kPlan>
MEGAMOE_DEVICE void math(const Context<kPlan>& here, Team<kPlan, Role::kCompute>& m) {
  (void)compute(m, here.args.call, [&] {
    MathRole<kPlan>(here, m).run();
    m.decide_alone();
    return true;
  });
}

}  // namespace megamoe::sm90
