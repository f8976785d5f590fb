#pragma once

#include "machine/sm90/context.cuh"
#include "protocol/forward.hpp"

namespace megamoe::sm90 {

// One block's token tiles: of the pool block, for each step along K.
template <Plan kPlan>
class TokenTiles {
 public:
  MEGAMOE_DEVICE TokenTiles(const Context<kPlan>& here, const Block& block)
      : rows_(align_up(block.rows, kSwizzleRows)) {
    const Call& call = here.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t first_row = call.ring.row(block.pool, 0);
    const bool is_linear1 = block.phase == Phase::kLinear1;
    tile_ = is_linear1 ? call.local(w.linear1_rows) + first_row * w.format.linear1_row_bytes
                       : call.local(w.linear2_rows) + first_row * w.format.linear2_row_bytes;
    if (!is_linear1 && kPlan.operands == Operands::kFloat8)
      scales_ = call.local(w.linear2_scales) + first_row * w.format.linear2_scale_bytes;
  }

  // Valid rows only, in whole groups of eight; what stands in the others makes columns that nobody
  // stores.
  MEGAMOE_DEVICE void copy_next(std::uint32_t stage) {
    constexpr int kPanels = element_bytes(kPlan.operands);
    constexpr std::uint32_t kPanelBytes = kPlan.block_m * kSwizzleBytes;
    constexpr std::uint32_t kScaleBytes = kPlan.block_m * 4;
    const std::uint32_t bytes = rows_ * kSwizzleBytes;
    const std::uint32_t barrier = TileProducer<kPlan>::full_barrier(stage);
    TileProducer<kPlan>::commit(stage, kPanels * bytes + (scales_ != nullptr ? kScaleBytes : 0));
    MEGAMOE_UNROLL
    for (int panel = 0; panel < kPanels; ++panel)
      ptx::bulk_copy(stage + panel * kPanelBytes, tile_ + panel * kPanelBytes, bytes, barrier);
    tile_ += kPlan.tile_bytes();
    if (scales_ == nullptr) return;
    ptx::bulk_copy(stage + offsetof(Stage<kPlan>, token_scales), scales_, kScaleBytes, barrier);
    scales_ += kScaleBytes;
  }

 private:
  const std::byte* tile_;
  const std::byte* scales_ = nullptr;
  int rows_;
};

// Sources, routing weights and exponents of the block's rows, padding included, and the bases of
// its weight rows.
template <Plan kPlan>
MEGAMOE_DEVICE void copy_headers(const Context<kPlan>& here,
                                 const Block& block,
                                 std::uint32_t slot) {
  using Slot = HeaderSlot<kPlan>;
  const Call& call = here.args.call;
  const Workspace& w = call.workspace;
  const std::int64_t row = call.ring.row(block.pool, 0);
  const std::uint32_t barrier = HeaderProducer<kPlan>::full_barrier(slot);
  constexpr std::uint32_t kWords = kPlan.block_m * 4;
  const WeightLayout layout = here.layout(block.phase);
  const std::uint32_t base_bytes = layout.slabs_of(block.n) * kSlabRows * sizeof(std::int16_t);
  const std::int16_t* bases =
      (block.phase == Phase::kLinear1 ? here.args.linear1 : here.args.linear2).bases;
  HeaderProducer<kPlan>::commit(slot, 4 * kWords + base_bytes);
  ptx::bulk_copy(
      slot + offsetof(Slot, bases),
      bases + static_cast<std::int64_t>(block.expert) * layout.padded_rows() + block.n * kBlockRows,
      base_bytes,
      barrier);
  ptx::bulk_copy(
      slot + offsetof(Slot, source), call.local(w.row_source) + row, 2 * kWords, barrier);
  ptx::bulk_copy(
      slot + offsetof(Slot, routing_weight), call.local(w.row_weight) + row, kWords, barrier);
  ptx::bulk_copy(slot + offsetof(Slot, exponent),
                 call.local(w.linear1_scales) + row * w.format.linear1_scale_bytes,
                 kWords,
                 barrier);
}

// Role: load_tokens
//   runs on   one warp per CTA; one lane of it copies
//   for each  block that load_weights feeds
//   waits     ArrivedRows (linear 1) or ReadyBlocks (linear 2) of the block's ring block; a free
//   header slot; an
//             empty stage
//   does      bulk copies of the pool block's tiles and row headers
//   signals   stage.full and header.full, by bytes; RolesJoined
//   when a wait gives up: tells load_weights to stop feeding, and fills the slots of what was fed
//   without copies
template <Plan kPlan>
MEGAMOE_DEVICE void load_tokens(const Context<kPlan>& here, Team<kPlan, Role::kLoadTokens>& m) {
  const Call& call = here.args.call;
  if (!wait_at_gate(m, call, 1)) return;
  m.decide_alone();
  FeedConsumer feed(here.feed());
  TileProducer<kPlan> tiles(here.stages());
  HeaderProducer<kPlan> headers(here.headers());
  bool is_abandoned = false;
  while (!call_is_refused(call)) {
    const std::uint32_t feed_slot = feed.wait();
    const Block block = FedBlock{feed_slot}.whole();
    __syncwarp();
    feed.release(feed_slot, m.lane() == 0);
    if (block.rows == 0) break;
    is_abandoned = is_abandoned || !wait_for_input(m, call, block);
    if (m.lane() == 0) {
      if (is_abandoned) here.control().words.is_abandoned = 1;
      // The rows were written by plain stores of other CTAs.
      ptx::fence_proxy_async();
      const std::uint32_t slot = headers.acquire();
      ptx::store_shared_u32(slot + offsetof(HeaderSlot<kPlan>, is_filled), is_abandoned ? 0 : 1);
      if (is_abandoned)
        headers.commit(slot);
      else
        copy_headers(here, block, slot);
      const BlockShape shape(here.layout(block.phase), block.n);
      for (int first = 0; first < shape.slabs; first += kPlan.math_warpgroups) {
        TokenTiles<kPlan> rows(here, block);
        for (int step = 0; step < shape.steps; ++step) {
          const std::uint32_t stage = tiles.acquire();
          if (is_abandoned)
            tiles.commit(stage);
          else
            rows.copy_next(stage);
        }
      }
    }
    __syncwarp();
  }
  if (is_abandoned) return;
  join_roles(m);
  if (wait_at_gate(m, call, 2)) join_roles(m);
}

}  // namespace megamoe::sm90
