#pragma once

#include <cstdint>

#include "machine/cuda/activation.cuh"
#include "machine/cuda/canonical_linear.hpp"
#include "machine/sm100/chunk.cuh"
#include "machine/sm100/pool_tile.hpp"
#include "numerics/quantize.hpp"

namespace megamoe::sm100 {

// Linear 1's epilogue: a chunk of a block's sums to 64 columns of E4M3 with a scale for each 32, in
// the tiles of linear 2's input. A group's columns are those of two neighbouring warps, which tell
// each other their largest through shared memory.
template <Plan kPlan>
class ActivationStore {
 public:
  MEGAMOE_DEVICE explicit ActivationStore(const BlockWork<kPlan>& work)
      : work_(work), at_(EpilogueThread::now()), staging_(work.here.staging(at_.warpgroup)) {
    note_biases();
  }

  MEGAMOE_DEVICE void store(int first, const Chunk& chunk) {
    float activations[Chunk::kHalves][kTokens];
    activate(first, chunk, activations);
    sync_warpgroup(at_.warpgroup);  // the chunk before has been read
    note_largest(activations);
    sync_warpgroup(at_.warpgroup);
    stage_codes(activations);
    sync_warpgroup(at_.warpgroup);
    write_out(first);
  }

 private:
  static constexpr int kTokens = 2 * Chunk::kOctets;  // a thread's

  struct Biases {
    float gate = 0.0F;
    float up = 0.0F;
  };

  MEGAMOE_DEVICE RowStaging& staging() const { return *ptx::shared_pointer<RowStaging>(staging_); }

  MEGAMOE_DEVICE void note_biases() {
    const Problem& problem = work_.here.args.call.problem;
    if (!problem.has_biases) return;
    const float* bias = work_.here.args.linear1.bias +
                        static_cast<std::int64_t>(work_.block.expert()) * 2 * problem.intermediate;
    MEGAMOE_UNROLL
    for (int half = 0; half < Chunk::kHalves; ++half) {
      const int row = work_.block.n() * kBlockRows + at_.upper_row(half);
      if (row >= 2 * problem.intermediate) continue;  // padding
      biases_[half] = {bias[gpu::gate_up_row(row, problem.intermediate)],
                       bias[gpu::gate_up_row(row + 8, problem.intermediate)]};
    }
  }

  MEGAMOE_DEVICE void activate(int first,
                               const Chunk& chunk,
                               float (&activations)[Chunk::kHalves][kTokens]) const {
    const gpu::ActivationForm form(work_.here.args.call.problem.activation);
    MEGAMOE_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      const float weight = work_.header().routing_weight[first + at_.token(t / 2, t % 2)];
      MEGAMOE_UNROLL
      for (int half = 0; half < Chunk::kHalves; ++half) {
        const float* sums = &chunk.sums[half][t / 2][t % 2];
        const std::uint32_t rounded =
            ptx::to_bfloat16x2(sums[0] + biases_[half].gate, sums[2] + biases_[half].up);
        activations[half][t] =
            form(__uint_as_float(rounded << 16), __uint_as_float(rounded & 0xFFFF0000U), weight);
      }
    }
  }

  // The largest of the warp's sixteen columns of each token: lanes with the same lane % 4.
  MEGAMOE_DEVICE void note_largest(const float (&activations)[Chunk::kHalves][kTokens]) const {
    constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;
    std::uint32_t bits[kTokens];
    MEGAMOE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      bits[t] = max(__float_as_uint(activations[0][t]) & kMagnitude,
                    __float_as_uint(activations[1][t]) & kMagnitude);
    MEGAMOE_UNROLL
    for (int apart = 4; apart < kWarpThreads; apart *= 2) {
      MEGAMOE_UNROLL
      for (int t = 0; t < kTokens; ++t)
        bits[t] = max(bits[t], __shfl_xor_sync(gpu::kAllLanes, bits[t], apart));
    }
    if (at_.lane() >= 4) return;
    MEGAMOE_UNROLL
    for (int t = 0; t < kTokens; ++t)
      staging().largest[at_.token(t / 2, t % 2)][at_.warp()] = bits[t];
  }

  // Of a token's group: columns 32 group .. 32 group + 31 of the block's.
  MEGAMOE_DEVICE std::uint32_t largest_of(int token, int group) const {
    const std::uint32_t* of_warps = staging().largest[token];
    return max(of_warps[2 * group], of_warps[2 * group + 1]);
  }

  // numerics/quantize.hpp for one value; the scale's reciprocal is 2^(127 - byte).
  static MEGAMOE_DEVICE float scaled(float value, std::uint32_t largest) {
    const std::uint32_t byte = activation_scale(largest).bits;
    return largest == 0 ? 0.0F : value * __uint_as_float((254U - byte) << 23);
  }

  MEGAMOE_DEVICE void stage_codes(const float (&activations)[Chunk::kHalves][kTokens]) const {
    constexpr std::uint32_t kInfinity = 0x7F800000U;
    constexpr std::uint32_t kNanCodes = Float8E4M3::kNan * 0x0101U;
    MEGAMOE_UNROLL
    for (int octet = 0; octet < Chunk::kOctets; ++octet) {
      const std::uint32_t even = largest_of(at_.token(octet, 0), at_.warp() / 2);
      const std::uint32_t odd = largest_of(at_.token(octet, 1), at_.warp() / 2);
      const std::uint32_t keep =
          (even < kInfinity ? 0x00FFU : 0U) | (odd < kInfinity ? 0xFF00U : 0U);
      std::uint32_t bytes = 0;
      MEGAMOE_UNROLL
      for (int half = 0; half < Chunk::kHalves; ++half) {
        const float* of_half = &activations[half][2 * octet];
        const std::uint32_t codes =
            ptx::to_float8x2(scaled(of_half[0], even), scaled(of_half[1], odd));
        bytes |= ((codes & keep) | (kNanCodes & ~keep)) << (16 * half);
      }
      const int row = octet * 8 + at_.lane() % 8;
      tcgen05::store_bytes_transposed(chunk_address(row, at_.warp()), bytes);
    }
  }

  // Rows of 64 bytes; chunks permuted so that eight rows' meet different banks.
  MEGAMOE_DEVICE std::uint32_t chunk_address(int token, int chunk) const {
    return staging_ + token * kBlockColumns + (chunk ^ (token / 2 % 4)) * gpu::kChunkBytes;
  }

  MEGAMOE_DEVICE void write_out(int first) const {
    constexpr int kChunks = kBlockColumns / gpu::kChunkBytes;
    constexpr int kGroups = kBlockColumns / kScaleGroup;
    constexpr int kCodeThreads = kChunkTokens * kChunks;
    static_assert(kCodeThreads + kChunkTokens * kGroups <= kWarpgroupThreads);
    const bool has_codes = at_.thread < kCodeThreads;
    const int i = has_codes ? at_.thread : at_.thread - kCodeThreads;
    const int token = has_codes ? i / kChunks : i / kGroups;
    const int row = first + token;
    if (token >= kChunkTokens || row >= work_.block.rows()) return;
    const Call& call = work_.here.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t block_row = call.ring.row(work_.block.pool(), 0);
    const int step = work_.block.n() / 2;
    const int side = work_.block.n() % 2;  // which half of the step's columns
    if (has_codes) {
      const int chunk = i % kChunks;
      std::byte* block = call.local(w.linear2_rows) + block_row * w.format.linear2_row_bytes;
      *reinterpret_cast<uint4*>(
          block + token_chunk_offset(kPlan.block_m, step, row, side * kChunks + chunk)) =
          ptx::load_shared_u32x4(chunk_address(token, chunk));
    } else {
      const int group = i % kGroups;
      std::byte* block = call.local(w.linear2_scales) + block_row * w.format.linear2_scale_bytes;
      block[token_scale_offset(kPlan.block_m, step, row) + side * kGroups + group] =
          static_cast<std::byte>(activation_scale(largest_of(token, group)).bits);
    }
  }

  const BlockWork<kPlan>& work_;
  EpilogueThread at_;
  std::uint32_t staging_;
  Biases biases_[Chunk::kHalves];
};

}  // namespace megamoe::sm100
