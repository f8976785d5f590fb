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
  int depth;

  MEGAMOE_DEVICE int groups() const { return depth / kScaleGroup; }
  MEGAMOE_DEVICE std::uint8_t scale(int group) const {
    return static_cast<std::uint8_t>(ptx::load_shared_u8(scales + group));
  }
};

// Which row of its pool block a row is; rows of a block scatter over all of it. `rows`: where the
// pool's rows of this kind begin, `row_bytes` each.
MEGAMOE_DEVICE int row_in_block(const std::byte* row,
                                const std::byte* rows,
                                std::uint32_t row_bytes,
                                int block_m) {
  const auto offset = static_cast<std::uint64_t>(row - rows);
  return static_cast<int>(offset / row_bytes % static_cast<std::uint64_t>(block_m));
}

// `RowStore::store(call, row, record, lane)` writes a row's codes and scales to the pool, all lanes
// together; `RowStore::longest_row(problem)` are the values of the longest row that is brought
// here. `kRows`: how many a team has under way.
template <class RowStore, int kRows>
class RowPulls {
 public:
  static constexpr int kInFlight = kRows;

  // `rows`: this team's kInFlight places for rows in shared memory; `barriers`: their mbarriers.
  MEGAMOE_DEVICE RowPulls(std::byte* rows, std::uint32_t barriers)
      : rows_(ptx::shared_address(rows)), barriers_(barriers) {}

  MEGAMOE_DEVICE void begin(const Call& call, const RowPull& pull, int lane) {
    if (lane == 0) {
      const Flying row = take_off(call, call.problem.hidden);
      const auto weight = reinterpret_cast<std::uintptr_t>(pull.weight.raw());
      const auto shift = static_cast<std::uint32_t>(weight % 16);
      row.start({pull.codes.raw(), pull.scales.raw()},
                {pull.pool_row, pull.pool_weight, pull.pool_scales, 0, shift},
                kWeightBytes);
      ptx::bulk_copy(row.place + kPulledWeight,
                     reinterpret_cast<const void*>(weight - shift),
                     kWeightBytes,
                     row.barrier);
    }
    next_ = after(next_);
  }

  MEGAMOE_DEVICE void finish(const Call& call, int lane) {
    const Flying row = land(call, call.problem.hidden);
    const PullRecord record = row.record();
    RowStore::store(call, row.view(record), record, lane);
    if (lane == 0)
      *record.weight =
          *ptx::shared_pointer<const float>(row.place + kPulledWeight + record.weight_shift);
    publish();
  }

 protected:
  struct Source {
    const std::uint8_t* codes;
    const std::uint8_t* scales;
  };

  // A row under way or landed, in its place in shared memory.
  struct Flying {
    std::uint32_t place;
    std::uint32_t barrier;
    int depth;

    MEGAMOE_DEVICE PullRecord& record() const { return *ptx::shared_pointer<PullRecord>(place); }
    MEGAMOE_DEVICE PulledRow view(const PullRecord& record) const {
      const std::uint32_t scales = place + pulled_scales(depth) + record.scales_shift;
      return {place + kPulledCodes, scales, depth};
    }

    // One lane: copies on one barrier, whose arrival also publishes the record to the other lanes.
    // `more`: bytes of further copies, which the caller starts.
    MEGAMOE_DEVICE void start(const Source& from, PullRecord to, std::uint32_t more) const {
      const auto codes = static_cast<std::uint32_t>(depth);
      const auto scales = reinterpret_cast<std::uintptr_t>(from.scales);
      to.scales_shift = static_cast<std::uint32_t>(scales % 16);
      record() = to;
      const std::uint32_t scale_bytes = align_up(to.scales_shift + codes / kScaleGroup, 16U);
      ptx::mbarrier_arrive_expect(barrier, codes + scale_bytes + more);
      ptx::bulk_copy(place + kPulledCodes, from.codes, codes, barrier);
      ptx::bulk_copy(place + pulled_scales(depth),
                     reinterpret_cast<const void*>(scales - to.scales_shift),
                     scale_bytes,
                     barrier);
    }
  };

  MEGAMOE_DEVICE Flying take_off(const Call& call, int depth) const {
    return at(call, next_, depth);
  }
  MEGAMOE_DEVICE Flying land(const Call& call, int depth) const {
    wait_for_phase(barriers_ + 8 * oldest_, parity_);
    return at(call, oldest_, depth);
  }
  MEGAMOE_DEVICE void advance_next() { next_ = after(next_); }
  // The landed row is in the pool.
  MEGAMOE_DEVICE void publish() {
    oldest_ = after(oldest_);
    parity_ ^= oldest_ == 0 ? 1 : 0;
  }

 private:
  static constexpr std::uint32_t kWeightBytes = 16;

  static MEGAMOE_DEVICE int after(int place) { return place + 1 == kInFlight ? 0 : place + 1; }

  MEGAMOE_DEVICE Flying at(const Call& call, int index, int depth) const {
    const int bytes = pull_bytes(RowStore::longest_row(call.problem));
    return {rows_ + index * bytes, barriers_ + 8 * index, depth};
  }

  std::uint32_t rows_;
  std::uint32_t barriers_;
  int next_ = 0;
  int oldest_ = 0;
  std::uint32_t parity_ = 0;
};

}  // namespace megamoe::gpu
