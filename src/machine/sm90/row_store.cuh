#pragma once

#include <cstdint>

#include "machine/cuda/pull_rows.cuh"
#include "machine/sm90/pool_tile.hpp"
#include "machine/sm90/regroup.cuh"
#include "machine/sm90/shared.hpp"
#include "protocol/call.hpp"

// A row on its way into the tiles that wgmma reads: all its groups are brought to one exponent, and
// K is permuted, each step into its tile of the pool block.
namespace megamoe::sm90 {

using gpu::PulledRow;

template <Plan kPlan>
class RowStore {
 public:
  static MEGAMOE_DEVICE int longest_row(const Problem& problem) {
    return sm90::longest_row(problem);
  }

  // A pulled row, into linear 1's tiles.
  static MEGAMOE_DEVICE void store(const Call& call,
                                   const PulledRow& row,
                                   const PullRecord& record,
                                   int lane) {
    const Workspace& w = call.workspace;
    store(row, record, call.local(w.linear1_rows), w.format.linear1_row_bytes, lane);
  }

  // `rows`: where the rows of this kind begin, `row_bytes` each.
  static MEGAMOE_DEVICE void store(const PulledRow& row,
                                   const PullRecord& record,
                                   const std::byte* rows,
                                   std::uint32_t row_bytes,
                                   int lane) {
    const int exponent = settle_exponent(row, lane);
    const int index = gpu::row_in_block(record.row, rows, row_bytes, kPlan.block_m);
    store_codes(row, exponent, record.row - std::int64_t{index} * row_bytes, index, lane);
    if (lane == 0) *reinterpret_cast<std::int32_t*>(record.scales) = exponent;
  }

 private:
  static MEGAMOE_DEVICE std::uint32_t largest_of(const uint4& codes) {
    constexpr std::uint32_t kMagnitudes = 0x7F7F7F7FU;
    return __vmaxu4(__vmaxu4(codes.x & kMagnitudes, codes.y & kMagnitudes),
                    __vmaxu4(codes.z & kMagnitudes, codes.w & kMagnitudes));
  }

  static MEGAMOE_DEVICE int settle_exponent(const PulledRow& row, int lane) {
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

  // `block`: the pool block's first tile; `index`: the row in it.
  static MEGAMOE_DEVICE void store_codes(
      const PulledRow& row, int exponent, std::byte* block, int index, int lane) {
    constexpr int kChunks = kStepDepth * element_bytes(kPlan.operands) / kChunkBytes;
    const int chunks = ceil_div(row.depth, kStepDepth) * kChunks;
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
  static MEGAMOE_DEVICE uint4 regrouped_chunk(const PulledRow& row,
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
};

}  // namespace megamoe::sm90
