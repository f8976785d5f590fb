#pragma once

#include <cstdint>

#include "machine/cuda/pipe.cuh"
#include "machine/sm90/pool_tile.hpp"
#include "machine/sm90/regroup.cuh"
#include "machine/sm90/shared.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"

// Brings rows from their source rank into the pool: a bulk copy into shared memory, there all
// groups of the row are brought to one exponent, and out with K permuted, each step into its tile
// of the pool block.
namespace megamoe::sm90 {

template <Plan kPlan>
class RowPulls {
 public:
  static constexpr int kInFlight = kPullsInFlight;

  // `rows`: this team's kInFlight places for rows in shared memory; `barriers`: their mbarriers.
  MEGAMOE_DEVICE RowPulls(std::byte* rows, std::uint32_t barriers)
      : rows_(rows), barriers_(barriers) {}

  MEGAMOE_DEVICE void begin(const Call& call, const RowPull& pull, int lane) {
    if (lane == 0) begin(call, pull);
    next_ ^= 1;
  }

  MEGAMOE_DEVICE void finish(const Call& call, int lane) {
    wait_for_phase(barriers_ + 8 * oldest_, parity_);
    std::byte* place = rows_ + oldest_ * pull_bytes(call.problem.hidden);
    const PullRecord record = *reinterpret_cast<const PullRecord*>(place);
    const RowView row{
        ptx::shared_address(place) + kPulledCodes,
        ptx::shared_address(place) + pulled_scales(call.problem.hidden) + record.scales_shift,
        call.problem.hidden};
    const int exponent = settle_exponent(row, lane);
    store_codes(call, row, exponent, record.row, lane);
    if (lane == 0) {
      *reinterpret_cast<std::int32_t*>(record.scales) = exponent;
      *record.weight = *reinterpret_cast<const float*>(place + kPulledWeight + record.weight_shift);
    }
    // The token loader reads rows and headers through the copy engine.
    ptx::fence_proxy_async();
    oldest_ ^= 1;
    parity_ ^= oldest_ == 0 ? 1 : 0;
  }

 private:
  static_assert(kInFlight == 2);

  // A row as it came, in shared memory.
  struct RowView {
    std::uint32_t codes;
    std::uint32_t scales;
    int hidden;

    MEGAMOE_DEVICE int groups() const { return hidden / kGroup; }
    MEGAMOE_DEVICE std::uint8_t scale(int group) const {
      return static_cast<std::uint8_t>(ptx::load_shared_u8(scales + group));
    }
  };

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
    const std::uint32_t scale_bytes = align_up(record.scales_shift + hidden / kGroup, 16U);
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

  static MEGAMOE_DEVICE std::uint32_t largest_of(const uint4& codes) {
    constexpr std::uint32_t kMagnitudes = 0x7F7F7F7FU;
    return __vmaxu4(__vmaxu4(codes.x & kMagnitudes, codes.y & kMagnitudes),
                    __vmaxu4(codes.z & kMagnitudes, codes.w & kMagnitudes));
  }

  static MEGAMOE_DEVICE int settle_exponent(const RowView& row, int lane) {
    int asked = kNothingAsked;
    for (int group = lane; group < row.groups(); group += kWarpThreads) {
      const std::uint32_t at = row.codes + group * kGroup;
      std::uint32_t most = __vmaxu4(largest_of(ptx::load_shared_u32x4(at)),
                                    largest_of(ptx::load_shared_u32x4(at + 16)));
      most = __vmaxu4(most, most >> 16);
      most = max(most & 0xFFU, (most >> 8) & 0xFFU);
      asked = max(asked, asked_exponent(static_cast<int>(most), row.scale(group)));
    }
    return settled_exponent(__reduce_max_sync(0xFFFFFFFFU, asked));
  }

  static MEGAMOE_DEVICE void store_codes(
      const Call& call, const RowView& row, int exponent, std::byte* pool_row, int lane) {
    constexpr int kChunks = kStepDepth * element_bytes(kPlan.operands) / kChunkBytes;
    const std::uint32_t row_bytes = call.workspace.format.linear1_row_bytes;
    const auto index = static_cast<int>(
        static_cast<std::uint64_t>(pool_row - call.local(call.workspace.linear1_rows)) / row_bytes %
        kPlan.block_m);
    std::byte* block = pool_row - static_cast<std::int64_t>(index) * row_bytes;
    const int chunks = ceil_div(row.hidden, kStepDepth) * kChunks;
    for (int i = lane; i < chunks; i += kWarpThreads) {
      const int step = i / kChunks;
      const int chunk = i % kChunks;
      const std::int64_t tile = std::int64_t{step} * kPlan.tile_bytes();
      *reinterpret_cast<uint4*>(block + tile + token_chunk_offset(kPlan.block_m, index, chunk)) =
          regrouped_chunk(row, step, chunk, exponent);
    }
  }

  // Sixteen bytes of a tile row: a word (kFloat8) or two codes (kBfloat16) of each of the step's
  // groups.
  static MEGAMOE_DEVICE uint4 regrouped_chunk(const RowView& row,
                                              int step,
                                              int chunk,
                                              int exponent) {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q) {
      const int group = step * kGroupsPerStep + q;
      words[q] = 0;
      if (group >= row.groups()) continue;
      const GroupShift shift = shift_of(row.scale(group), exponent);
      const std::uint32_t codes = row.codes + group * kGroup;
      if constexpr (kPlan.operands == Operands::kFloat8) {
        const std::uint32_t four = ptx::load_shared_u32(codes + 4 * chunk);
        words[q] = shift.is_nan ? 0x7F7F7F7FU : scale_codes(four, shift.binades);
      } else {
        const std::uint32_t two = ptx::load_shared_u16(codes + 2 * chunk);
        words[q] = shift.is_nan ? 0x7FC07FC0U : two_codes_to_bfloat16(two, shift.binades);
      }
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  std::byte* rows_;
  std::uint32_t barriers_;
  int next_ = 0;
  int oldest_ = 0;
  std::uint32_t parity_ = 0;
};

}  // namespace megamoe::sm90
