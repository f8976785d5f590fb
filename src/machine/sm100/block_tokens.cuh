#pragma once

#include "machine/cuda/roles/load_tokens.cuh"
#include "machine/sm100/context.cuh"

namespace megamoe::sm100 {

// What the token loader copies of a block: the headers, this CTA's half of the tokens, and the
// scales of all of them.
template <Plan kPlan>
class BlockTokens {
 public:
  MEGAMOE_DEVICE explicit BlockTokens(const Context<kPlan>& here)
      : here_(here), tiles_(here.stages()) {}

  using Header = HeaderSlot<kPlan>;

  MEGAMOE_DEVICE void copy_headers(const Block& block, std::uint32_t slot) const {
    using Rows = gpu::RowHeaders<kPlan.block_m>;
    Producer<Header, kFeedSlots>::commit(slot, Rows::kBytes);
    Rows::template copy<Header>(here_.args.call, block, slot);
  }

  // Rows up to the instruction's multiple; what stands in those past the valid ones makes columns
  // that nobody stores.
  MEGAMOE_DEVICE void fill_stages(const Block& block, bool with_rows) {
    const Call& call = here_.args.call;
    const Workspace& w = call.workspace;
    const bool is_linear1 = block.phase == Phase::kLinear1;
    const std::int64_t row = call.ring.row(block.pool, 0);
    const int half = half_tokens(block.rows);
    const std::byte* tile = is_linear1
                                ? call.local(w.linear1_rows) + row * w.format.linear1_row_bytes
                                : call.local(w.linear2_rows) + row * w.format.linear2_row_bytes;
    const std::byte* scales =
        is_linear1 ? call.local(w.linear1_scales) + row * w.format.linear1_scale_bytes
                   : call.local(w.linear2_scales) + row * w.format.linear2_scale_bytes;
    tile += static_cast<int>(ptx::cluster_rank()) * half * kRowBytes;
    const int steps = here_.layout(block.phase).steps();
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t stage = tiles_.acquire();
      if (with_rows)
        copy(stage, tile, half * kRowBytes, scales);
      else
        tiles_.commit(stage);
      tile += token_tile_bytes(kPlan.block_m);
      scales += kScaleBytes;
    }
  }

 private:
  static constexpr std::uint32_t kScaleBytes = token_scale_bytes(kPlan.block_m);

  static MEGAMOE_DEVICE void copy(std::uint32_t stage,
                                  const std::byte* tile,
                                  std::uint32_t tile_bytes,
                                  const std::byte* scales) {
    const std::uint32_t barrier = TileProducer<kPlan>::full_barrier(stage);
    TileProducer<kPlan>::commit(stage, tile_bytes + kScaleBytes);
    ptx::bulk_copy(stage + offsetof(Stage<kPlan>, tokens), tile, tile_bytes, barrier);
    ptx::bulk_copy(stage + offsetof(Stage<kPlan>, token_scales), scales, kScaleBytes, barrier);
  }

  const Context<kPlan>& here_;
  TileProducer<kPlan> tiles_;
};

}  // namespace megamoe::sm100
