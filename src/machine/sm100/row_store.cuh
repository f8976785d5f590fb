#pragma once

#include <cstdint>

#include "machine/cuda/pull_rows.cuh"
#include "machine/sm100/pool_tile.hpp"
#include "machine/sm100/shared.hpp"

namespace megamoe::sm100 {

// A pulled row on its way into the pool: codes and scales stay as they are and go to their places
// in the tiles of the pool block; K is padded with zeros of scale one.
template <Plan kPlan>
class RowStore {
 public:
  static MEGAMOE_DEVICE int longest_row(const Problem& problem) { return problem.hidden; }

  static MEGAMOE_DEVICE void store(const Call& call,
                                   const gpu::PulledRow& row,
                                   const gpu::PullRecord& record,
                                   int lane) {
    const PoolFormat& format = call.workspace.format;
    const int index = gpu::row_in_block(record.row,
                                        call.local(call.workspace.linear1_rows),
                                        format.linear1_row_bytes,
                                        kPlan.block_m);
    store_codes(row, record.row - std::int64_t{index} * format.linear1_row_bytes, index, lane);
    store_scales(
        row, record.scales - std::int64_t{index} * format.linear1_scale_bytes, index, lane);
  }

 private:
  static MEGAMOE_DEVICE void store_codes(const gpu::PulledRow& row,
                                         std::byte* block,
                                         int index,
                                         int lane) {
    constexpr int kChunks = kRowBytes / gpu::kChunkBytes;
    const int chunks = steps_of(row.depth) * kChunks;
    for (int i = lane; i < chunks; i += kWarpThreads) {
      const int first = i * gpu::kChunkBytes;
      uint4 codes{};
      if (first < row.depth) codes = ptx::load_shared_u32x4(row.codes + first);
      const std::int64_t to = token_chunk_offset(kPlan.block_m, i / kChunks, index, i % kChunks);
      *reinterpret_cast<uint4*>(block + to) = codes;
    }
  }

  static MEGAMOE_DEVICE void store_scales(const gpu::PulledRow& row,
                                          std::byte* block,
                                          int index,
                                          int lane) {
    const int groups = row.groups();
    for (int step = lane; step < steps_of(row.depth); step += kWarpThreads) {
      std::uint32_t word = 0;
      MEGAMOE_UNROLL
      for (int i = 0; i < kMmasPerStep; ++i) {
        const int group = step * kMmasPerStep + i;
        const std::uint32_t scale = group < groups ? row.scale(group) : kPaddingScale;
        word |= scale << (8 * i);
      }
      *reinterpret_cast<std::uint32_t*>(block + token_scale_offset(kPlan.block_m, step, index)) =
          word;
    }
  }
};

}  // namespace megamoe::sm100
