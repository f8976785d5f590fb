#pragma once

#include <cstdint>

#include "machine/cuda/pipe.cuh"
#include "machine/cuda/pull_place.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"

// Brings rows from their source rank into the pool: a bulk copy into shared memory, and from there
// into the machine's own tiles.
namespace megamoe::gpu {

// A row as it came, in shared memory.
struct PulledRow {
  std::uint32_t codes;
  std::uint32_t scales;
  int hidden;

  MEGAMOE_DEVICE int groups() const { return hidden / kScaleGroup; }
  MEGAMOE_DEVICE std::uint8_t scale(int group) const {
    return static_cast<std::uint8_t>(ptx::load_shared_u8(scales + group));
  }
};

// Which row of its pool block a row of linear 1's input is; rows of a block scatter over all of it.
MEGAMOE_DEVICE int row_in_block(const Call& call, const std::byte* pool_row, int block_m) {
  const auto offset =
      static_cast<std::uint64_t>(pool_row - call.local(call.workspace.linear1_rows));
  return static_cast<int>(offset / call.workspace.format.linear1_row_bytes %
                          static_cast<std::uint64_t>(block_m));
}

// `RowStore::store(call, row, record, lane)` writes a row's codes and scales to the pool, all lanes
// together. `kRows`: how many a team has under way.
template <class RowStore, int kRows>
class RowPulls {
 public:
  static constexpr int kInFlight = kRows;

  // `rows`: this team's kInFlight places for rows in shared memory; `barriers`: their mbarriers.
  MEGAMOE_DEVICE RowPulls(std::byte* rows, std::uint32_t barriers)
      : rows_(rows), barriers_(barriers) {}

  MEGAMOE_DEVICE void begin(const Call& call, const RowPull& pull, int lane) {
    if (lane == 0) begin(call, pull);
    next_ = after(next_);
  }

  MEGAMOE_DEVICE void finish(const Call& call, int lane) {
    wait_for_phase(barriers_ + 8 * oldest_, parity_);
    std::byte* place = rows_ + oldest_ * pull_bytes(call.problem.hidden);
    const PullRecord record = *reinterpret_cast<const PullRecord*>(place);
    const PulledRow row{
        ptx::shared_address(place) + kPulledCodes,
        ptx::shared_address(place) + pulled_scales(call.problem.hidden) + record.scales_shift,
        call.problem.hidden};
    RowStore::store(call, row, record, lane);
    if (lane == 0)
      *record.weight = *reinterpret_cast<const float*>(place + kPulledWeight + record.weight_shift);
    // The token loader reads rows and headers through the copy engine.
    ptx::fence_proxy_async();
    oldest_ = after(oldest_);
    parity_ ^= oldest_ == 0 ? 1 : 0;
  }

 private:
  static MEGAMOE_DEVICE int after(int place) { return place + 1 == kInFlight ? 0 : place + 1; }

  // One lane: three copies on one barrier, whose arrival also publishes the record to the other
  // lanes.
  MEGAMOE_DEVICE void begin(const Call& call, const RowPull& pull) {
    const auto hidden = static_cast<std::uint32_t>(call.problem.hidden);
    const auto scales = reinterpret_cast<std::uintptr_t>(pull.scales.raw());
    const auto weight = reinterpret_cast<std::uintptr_t>(pull.weight.raw());
    const PullRecord record = {pull.pool_row,
                               pull.pool_weight,
                               pull.pool_scales,
                               static_cast<std::uint32_t>(scales % 16),
                               static_cast<std::uint32_t>(weight % 16)};
    std::byte* place = rows_ + next_ * pull_bytes(call.problem.hidden);
    *reinterpret_cast<PullRecord*>(place) = record;
    const std::uint32_t barrier = barriers_ + 8 * next_;
    const std::uint32_t to = ptx::shared_address(place);
    const std::uint32_t scale_bytes = align_up(record.scales_shift + hidden / kScaleGroup, 16U);
    ptx::mbarrier_arrive_expect(barrier, hidden + scale_bytes + 16);
    ptx::bulk_copy(to + kPulledCodes, pull.codes.raw(), hidden, barrier);
    ptx::bulk_copy(to + pulled_scales(call.problem.hidden),
                   reinterpret_cast<const void*>(scales - record.scales_shift),
                   scale_bytes,
                   barrier);
    ptx::bulk_copy(to + kPulledWeight,
                   reinterpret_cast<const void*>(weight - record.weight_shift),
                   16,
                   barrier);
  }

  std::byte* rows_;
  std::uint32_t barriers_;
  int next_ = 0;
  int oldest_ = 0;
  std::uint32_t parity_ = 0;
};

}  // namespace megamoe::gpu
