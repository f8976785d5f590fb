#pragma once

#include "machine/cuda/roles/load_tokens.cuh"
#include "machine/sm90/context.cuh"

namespace megamoe::sm90 {

// One block's token tiles: of the pool block, for each step along K.
template <Plan kPlan>
class TokenTiles {
 public:
  MEGAMOE_DEVICE TokenTiles(const Context<kPlan>& here, const Block& block)
      : rows_(align_up(block.rows, kSwizzleRows)) {
    const Call& call = here.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t row = call.ring.row(block.pool, 0);
    tile_ = block.phase == Phase::kLinear1
                ? call.local(w.linear1_rows) + row * w.format.linear1_row_bytes
                : call.local(linear2_tiles(call, kPlan.operands, row));
  }

  // Valid rows only, in whole groups of eight; what stands in the others makes columns that nobody
  // stores.
  MEGAMOE_DEVICE void copy_next(std::uint32_t stage) {
    constexpr int kPanels = element_bytes(kPlan.operands);
    constexpr std::uint32_t kPanelBytes = kPlan.block_m * kSwizzleBytes;
    const std::uint32_t bytes = rows_ * kSwizzleBytes;
    const std::uint32_t barrier = TileProducer<kPlan>::full_barrier(stage);
    TileProducer<kPlan>::commit(stage, kPanels * bytes);
    MEGAMOE_UNROLL
    for (int panel = 0; panel < kPanels; ++panel)
      ptx::bulk_copy(stage + panel * kPanelBytes, tile_ + panel * kPanelBytes, bytes, barrier);
    tile_ += kPlan.tile_bytes();
  }

 private:
  const std::byte* tile_;
  int rows_;
};

// What the token loader copies of a block: headers and tiles.
template <Plan kPlan>
class BlockTokens {
 public:
  using Header = HeaderSlot<kPlan>;

  MEGAMOE_DEVICE explicit BlockTokens(const Context<kPlan>& here)
      : here_(here), tiles_(here.stages()) {}

  // Besides what every machine's header has: exponents of the rows, and the bases of the block's
  // weight rows.
  MEGAMOE_DEVICE void copy_headers(const Block& block, std::uint32_t slot) const {
    using Rows = gpu::RowHeaders<kPlan.block_m>;
    const Call& call = here_.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t row = call.ring.row(block.pool, 0);
    const std::uint32_t barrier = HeaderProducer<kPlan>::full_barrier(slot);
    const WeightLayout layout = here_.layout(block.phase);
    const std::uint32_t base_bytes = layout.slabs_of(block.n) * kSlabRows * sizeof(std::int16_t);
    const std::int16_t* bases =
        (block.phase == Phase::kLinear1 ? here_.args.linear1 : here_.args.linear2).bases;
    HeaderProducer<kPlan>::commit(slot, Rows::kBytes + Rows::kWord + base_bytes);
    Rows::template copy<Header>(call, block, slot);
    ptx::bulk_copy(slot + offsetof(Header, bases),
                   bases + static_cast<std::int64_t>(block.expert) * layout.padded_rows() +
                       block.n * kBlockRows,
                   base_bytes,
                   barrier);
    const Sym<std::byte> exponents =
        block.phase == Phase::kLinear1 ? w.linear1_scales : w.linear2_scales;
    ptx::bulk_copy(slot + offsetof(Header, exponent),
                   call.local(exponents) + row * sizeof(std::int32_t),
                   Rows::kWord,
                   barrier);
  }

  MEGAMOE_DEVICE void fill_stages(const Block& block, bool with_rows) {
    const BlockShape shape(here_.layout(block.phase), block.n);
    for (int first = 0; first < shape.slabs; first += kPlan.math_warpgroups) {
      TokenTiles<kPlan> rows(here_, block);
      for (int step = 0; step < shape.steps; ++step) {
        const std::uint32_t stage = tiles_.acquire();
        if (with_rows)
          rows.copy_next(stage);
        else
          tiles_.commit(stage);
      }
    }
  }

 private:
  const Context<kPlan>& here_;
  TileProducer<kPlan> tiles_;
};

}  // namespace megamoe::sm90
