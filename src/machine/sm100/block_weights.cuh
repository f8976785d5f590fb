#pragma once

#include "machine/sm100/context.cuh"

namespace megamoe::sm100 {

// Copies a block's weights, stage by stage: codes by the tensor map, which spreads them to a byte
// each (and counts the packed bytes), scales as they lie.
template <Plan kPlan>
class BlockWeights {
 public:
  static constexpr bool kMayStop = false;

  MEGAMOE_DEVICE explicit BlockWeights(const Context<kPlan>& here)
      : here_(here), tiles_(here.stages()) {
    ptx::prefetch_tensor_map(&here.args.linear1.codes);
    ptx::prefetch_tensor_map(&here.args.linear2.codes);
  }

  MEGAMOE_DEVICE void load(const Block& block) {
    const WeightLayout layout = here_.layout(block.phase);
    const LinearWeights& weights =
        block.phase == Phase::kLinear1 ? here_.args.linear1 : here_.args.linear2;
    const int row = block.expert * layout.padded_rows() + block.n * kBlockRows;
    const std::byte* scales =
        weights.scales + block.expert * layout.scale_bytes() + layout.scale_offset(block.n, 0);
    for (int step = 0; step < layout.steps(); ++step, scales += kScaleCopyBytes) {
      const std::uint32_t stage = tiles_.acquire();
      const std::uint32_t barrier = tiles_.full_barrier(stage);
      tiles_.commit(stage, kPackedTileBytes + kScaleCopyBytes);
      ptx::tensor_copy(stage + offsetof(Stage<kPlan>, weights),
                       &weights.codes,
                       {step * kStepDepth, row},
                       barrier);
      ptx::bulk_copy(
          stage + offsetof(Stage<kPlan>, weight_scales), scales, kScaleCopyBytes, barrier);
    }
  }

  // Nothing arrives at a stage any more: the leader's commits reach into the other CTA's memory,
  // which may not go before they have.
  MEGAMOE_DEVICE void drain() { tiles_.drain(); }

 private:
  const Context<kPlan>& here_;
  TileProducer<kPlan> tiles_;
};

}  // namespace megamoe::sm100
