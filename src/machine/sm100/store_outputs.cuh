#pragma once

#include <cstdint>

#include "machine/sm100/chunk.cuh"

namespace megamoe::sm100 {

// Linear 2's epilogue: a chunk of a block's sums as bf16 rows to their slots on the source ranks,
// turned in shared memory so that sixteen lanes write 256 bytes of one row.
template <Plan kPlan>
class OutputStore {
 public:
  MEGAMOE_DEVICE explicit OutputStore(const BlockWork<kPlan>& work)
      : work_(work), at_(EpilogueThread::now()), staging_(work.here.staging(at_.warpgroup)) {
    note_biases();
  }

  MEGAMOE_DEVICE void store(int first, Chunk& chunk) {
    if (work_.here.args.call.problem.has_biases) add_biases(first, chunk);
    sync_warpgroup(at_.warpgroup);  // the chunk before has left
    turn(chunk);
    sync_warpgroup(at_.warpgroup);
    push(first);
  }

 private:
  struct Biases {
    float upper = 0.0F;
    float lower = 0.0F;
  };

  MEGAMOE_DEVICE int first_channel() const { return work_.block.n() * kBlockRows; }

  MEGAMOE_DEVICE void note_biases() {
    const Problem& problem = work_.here.args.call.problem;
    if (!problem.has_biases) return;
    const float* bias = work_.here.args.linear2.bias +
                        static_cast<std::int64_t>(work_.block.expert()) * problem.hidden;
    MEGAMOE_UNROLL
    for (int half = 0; half < Chunk::kHalves; ++half) {
      const int channel = first_channel() + at_.upper_row(half);
      if (channel < problem.hidden) biases_[half] = {bias[channel], bias[channel + 8]};
    }
  }

  MEGAMOE_DEVICE void add_biases(int first, Chunk& chunk) const {
    MEGAMOE_UNROLL
    for (int t = 0; t < 2 * Chunk::kOctets; ++t) {
      const float weight = work_.header().routing_weight[first + at_.token(t / 2, t % 2)];
      MEGAMOE_UNROLL
      for (int half = 0; half < Chunk::kHalves; ++half) {
        float* sums = &chunk.sums[half][t / 2][t % 2];
        sums[0] += biases_[half].upper * weight;
        sums[2] += biases_[half].lower * weight;
      }
    }
  }

  // A warp has 32 of the block's 128 channels, four 16-byte chunks of each row.
  MEGAMOE_DEVICE void turn(const Chunk& chunk) const {
    const int lane = at_.lane();
    MEGAMOE_UNROLL
    for (int octet = 0; octet < Chunk::kOctets; ++octet) {
      const float* upper_half = chunk.sums[0][octet];
      const float* lower_half = chunk.sums[1][octet];
      ptx::store_matrices_transposed(chunk_address(octet * 8 + lane % 8, at_.warp() * 4 + lane / 8),
                                     ptx::to_bfloat16x2(upper_half[0], upper_half[1]),
                                     ptx::to_bfloat16x2(upper_half[2], upper_half[3]),
                                     ptx::to_bfloat16x2(lower_half[0], lower_half[1]),
                                     ptx::to_bfloat16x2(lower_half[2], lower_half[3]));
    }
  }
  MEGAMOE_DEVICE std::uint32_t chunk_address(int token, int chunk) const {
    return staging_ + token * RowStaging::kOutputRowBytes +
           (chunk ^ (token % 8)) * gpu::kChunkBytes;
  }

  MEGAMOE_DEVICE void push(int first) const {
    constexpr int kChunks = RowStaging::kOutputRowBytes / gpu::kChunkBytes;
    constexpr int kValues = gpu::kChunkBytes / 2;
    const Call& call = work_.here.args.call;
    MEGAMOE_UNROLL
    for (int i = at_.thread; i < kChunkTokens * kChunks; i += kWarpgroupThreads) {
      const int token = i / kChunks;
      const int chunk = i % kChunks;
      const int channel = first_channel() + chunk * kValues;
      if (first + token >= work_.block.rows() || channel >= call.problem.hidden) continue;
      const Remote<Bfloat16> row = combine_row(call, work_.header().source[first + token]);
      *reinterpret_cast<uint4*>(row.at(static_cast<std::uint64_t>(channel)).raw()) =
          ptx::load_shared_u32x4(chunk_address(token, chunk));
    }
  }

  const BlockWork<kPlan>& work_;
  EpilogueThread at_;
  std::uint32_t staging_;
  Biases biases_[Chunk::kHalves];
};

}  // namespace megamoe::sm100
