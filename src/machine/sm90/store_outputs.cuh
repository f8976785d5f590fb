#pragma once

#include <cstdint>

#include "machine/sm90/epilogue.cuh"

namespace megamoe::sm90 {

// Linear 2's epilogue: one slab's sums as bf16 rows to their slots on the source ranks. A chunk of tokens at a
// time is turned in shared memory, so that eight lanes write 128 bytes of one row.
template <Plan kPlan>
class OutputStore {
 public:
  static constexpr int kTokens = kPlan.block_m;
  using Staging = OutputStaging<kPlan>;

  MEGAMOE_DEVICE OutputStore(const BlockWork<kPlan>& work, const MathPlace& place)
      : work_(work),
        place_(place),
        rows_(work.here.shared.staging.outputs.rows[place.warpgroup]) {}

  MEGAMOE_DEVICE void push(int slab, float (&sum)[kTokens / 2]) {
    finish_sums(slab, sum);
    MEGAMOE_UNROLL
    for (int first = 0; first < kTokens; first += Staging::kTokens) {
      if (first > 0) sync_warpgroup(place_.warpgroup);
      turn(sum + first / 2);
      sync_warpgroup(place_.warpgroup);
      push_chunk(slab, first);
    }
  }

 private:
  MEGAMOE_DEVICE void finish_sums(int slab, float (&sum)[kTokens / 2]) {
    const RowPair rows(work_.here.args.linear2, work_.layout, work_.block, slab, place_);
    const bool has_biases = work_.here.args.call.problem.has_biases;
    float upper_bias = 0.0F;
    float lower_bias = 0.0F;
    if (has_biases) {
      const float* bias = work_.here.args.linear2.bias +
                          static_cast<std::int64_t>(work_.block.expert) * work_.layout.rows;
      upper_bias = rows.upper < work_.layout.rows ? bias[rows.upper] : 0.0F;
      lower_bias = rows.upper + 8 < work_.layout.rows ? bias[rows.upper + 8] : 0.0F;
    }
    MEGAMOE_UNROLL
    for (int t = 0; t < kTokens / 4; ++t) {
      const int at = t / 2 * 4 + t % 2;
      sum[at] = sum[at] * rows.upper_power.first * rows.upper_power.second;
      sum[at + 2] = sum[at + 2] * rows.lower_power.first * rows.lower_power.second;
      if (!has_biases) continue;
      const float weight =
          work_.header.routing_weight[t / 2 * 8 + place_.lane() % 4 * 2 + t % 2];
      sum[at] += upper_bias * weight;
      sum[at + 2] += lower_bias * weight;
    }
  }

  // Fragments to rows of tokens: a warp has 16 of the slab's 64 columns, two 16-byte chunks of each row.
  MEGAMOE_DEVICE void turn(const float* sum) {
    const int lane = place_.lane();
    const std::uint32_t rows = ptx::shared_address(rows_);
    if constexpr (Staging::kTokens == 8) {
      ptx::store_matrices_transposed(rows + chunk_offset(lane % 8, lane / 8 % 2),
                                     ptx::to_bfloat16x2(sum[0], sum[1]),
                                     ptx::to_bfloat16x2(sum[2], sum[3]));
    } else {
      MEGAMOE_UNROLL
      for (int sixteen = 0; sixteen < Staging::kTokens / 16; ++sixteen) {
        const float* s = sum + sixteen * 8;
        const int token = sixteen * 16 + lane / 16 * 8 + lane % 8;
        ptx::store_matrices_transposed(rows + chunk_offset(token, lane / 8 % 2),
                                       ptx::to_bfloat16x2(s[0], s[1]),
                                       ptx::to_bfloat16x2(s[2], s[3]),
                                       ptx::to_bfloat16x2(s[4], s[5]),
                                       ptx::to_bfloat16x2(s[6], s[7]));
      }
    }
  }
  MEGAMOE_DEVICE std::uint32_t chunk_offset(int token, int half) const {
    return swizzled_offset(token, place_.warp() * 2 + half);
  }
  static MEGAMOE_DEVICE std::uint32_t swizzled_offset(int token, int chunk) {
    return token * kSlabRows * 2 + (chunk ^ (token % 8)) * kChunkBytes;
  }

  MEGAMOE_DEVICE void push_chunk(int slab, int first) {
    constexpr int kChunks = kSlabRows * 2 / kChunkBytes;
    constexpr int kValues = kChunkBytes / 2;
    const int channel = (work_.block.n * kBlockSlabs + slab) * kSlabRows;
    const Call& call = work_.here.args.call;
    for (int i = place_.thread; i < Staging::kTokens * kChunks; i += kWarpgroupThreads) {
      const int token = i / kChunks;
      const int chunk = i % kChunks;
      const int to = channel + chunk * kValues;
      if (first + token >= work_.block.rows || to >= call.problem.hidden) continue;
      const uint4 values = ptx::load_shared_u32x4(ptx::shared_address(rows_) +
                                                  swizzled_offset(token, chunk));
      const Remote<Bfloat16> row = combine_row(call, work_.header.source[first + token]);
      *reinterpret_cast<uint4*>(row.at(static_cast<std::uint64_t>(to)).raw()) = values;
    }
  }

  const BlockWork<kPlan>& work_;
  MathPlace place_;
  std::uint8_t (*rows_)[kSlabRows * 2];
};

}  // namespace megamoe::sm90
