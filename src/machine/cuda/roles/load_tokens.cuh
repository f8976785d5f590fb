#pragma once

#include "machine/cuda/context.cuh"
#include "protocol/forward.hpp"

namespace megamoe::gpu {

// Sources and routing weights of the block's rows, padding included, for the epilogues.
template <int kBlockM>
struct RowHeaders {
  static constexpr std::uint32_t kWord = kBlockM * 4;
  static constexpr std::uint32_t kBytes = 3 * kWord;

  // `slot`, of a type with `source` and `routing_weight`, gets them; its barrier counts kBytes.
  template <class Slot>
  static MEGAMOE_DEVICE void copy(const Call& call, const Block& block, std::uint32_t slot) {
    const Workspace& w = call.workspace;
    const std::int64_t row = call.ring.row(block.pool, 0);
    const std::uint32_t barrier = slot + static_cast<std::uint32_t>(offsetof(Slot, full));
    ptx::bulk_copy(
        slot + offsetof(Slot, source), call.local(w.row_source) + row, 2 * kWord, barrier);
    ptx::bulk_copy(
        slot + offsetof(Slot, routing_weight), call.local(w.row_weight) + row, kWord, barrier);
  }
};

// Role: load_tokens                                                         SM90, SM100
//   runs on   one warp per CTA; one lane of it copies
//   for each  block that load_weights feeds
//   waits     ArrivedRows (linear 1) or ReadyBlocks (linear 2) of the block's ring block; a free
//             header slot; an empty stage
//   does      bulk copies of the pool block's tiles and row headers
//   signals   stage.full and header.full, by bytes; RolesJoined
//   when a wait gives up: tells load_weights to stop feeding, and fills the slots of what was fed
//   without copies
//
// `Source::Header` is the header's slot; `copy_headers(block, slot)` fills one, and
// `fill_stages(block, with_rows)` the stages of a block.
template <class Source, class Context, class M>
MEGAMOE_DEVICE void load_tokens(const Context& here, M& m) {
  const Call& call = here.args.call;
  if (!wait_at_gate(m, call, 1)) return;
  m.decide_alone();
  using Header = typename Source::Header;
  FeedConsumer feed(here.feed());
  Producer<Header, kFeedSlots> headers(here.headers());
  Source source(here);
  bool is_abandoned = false;
  while (!call_is_refused(call)) {
    const std::uint32_t feed_slot = feed.wait();
    const Block block = FedBlock{feed_slot}.whole();
    __syncwarp();
    feed.release(feed_slot, m.lane() == 0);
    if (block.rows == 0) break;
    is_abandoned = is_abandoned || !wait_for_input(m, call, block);
    if (m.lane() == 0) {
      if (is_abandoned) here.words().is_abandoned = 1;
      // The rows were written by plain stores of other CTAs.
      ptx::fence_proxy_async();
      const std::uint32_t slot = headers.acquire();
      ptx::store_shared_u32(slot + offsetof(Header, is_filled), is_abandoned ? 0 : 1);
      if (is_abandoned)
        headers.commit(slot);
      else
        source.copy_headers(block, slot);
      source.fill_stages(block, !is_abandoned);
    }
    __syncwarp();
  }
  if (is_abandoned) return;
  join_roles(m);
  if (wait_at_gate(m, call, 2)) join_roles(m);
}

}  // namespace megamoe::gpu
