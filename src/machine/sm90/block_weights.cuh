#pragma once

#include "machine/sm90/context.cuh"

namespace megamoe::sm90 {

// Copies a block's weights, stage by stage, pass after pass.
template <Plan kPlan>
class BlockWeights {
 public:
  static constexpr bool kMayStop = true;

  MEGAMOE_DEVICE explicit BlockWeights(const Context<kPlan>& here)
      : here_(here), tiles_(here.stages()) {}

  MEGAMOE_DEVICE void load(const Block& block) {
    const WeightLayout layout = here_.layout(block.phase);
    const BlockShape shape(layout, block.n);
    const LinearWeights& weights =
        block.phase == Phase::kLinear1 ? here_.args.linear1 : here_.args.linear2;
    const std::byte* of_block =
        weights.codes + block.expert * layout.bytes() + layout.offset(block.n, 0, 0);
    constexpr int kSlab = slab_bytes(kPlan.operands);
    for (int first = 0; first < shape.slabs; first += kPlan.math_warpgroups) {
      const int slabs = min(kPlan.math_warpgroups, shape.slabs - first);
      const std::byte* from = of_block + first * kSlab;
      for (int step = 0; step < shape.steps; ++step, from += shape.slabs * kSlab) {
        const std::uint32_t stage = tiles_.acquire();
        tiles_.commit(stage, slabs * kSlab);
        ptx::bulk_copy(stage + offsetof(Stage<kPlan>, weights),
                       from,
                       slabs * kSlab,
                       tiles_.full_barrier(stage));
      }
    }
  }

 private:
  const Context<kPlan>& here_;
  TileProducer<kPlan> tiles_;
};

}  // namespace megamoe::sm90
