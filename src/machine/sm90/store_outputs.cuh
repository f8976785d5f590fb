#pragma once

#include <cstdint>

#include "machine/sm90/epilogue.cuh"

namespace megamoe::sm90 {

// Linear 2's epilogue: one slab's sums as bf16 rows to their slots on the source ranks. A chunk of
// tokens at a time is turned in shared memory, so that eight lanes write 128 bytes of one row.
template <Plan kPlan>
class OutputStore {
 public:
  static constexpr int kTokens = kPlan.block_m;

  MEGAMOE_DEVICE explicit OutputStore(const BlockWork<kPlan>& work)
      : work_(work), place_(FragmentPlace::now()), staging_(work.here.staging(place_.warpgroup)) {}

  MEGAMOE_DEVICE void push(int slab, const float (&sum)[kTokens / 2]) {
    const int row = place_.upper_row(slab);
    const Scaling scaling(work_.header().base(row), work_.header().base(row + 8));
    const Biases bias = biases(slab);
    const int tokens = work_.block().rows();
    MEGAMOE_NO_UNROLL
    for (int number = 0; number < Part::kCount; ++number) {
      const int first = number * Part::kTokens;
      if (first >= tokens) break;
      Part part(sum, number);
      if (scaling.is_moderate(work_.lane_exponent(first)))
        finish_sums<true>(part, first, scaling, bias);
      else
        finish_sums<false>(part, first, scaling, bias);
      sync_warpgroup(place_.warpgroup);  // the chunk before has left
      if (number == 0) note_destinations(tokens);
      turn(part.sums);
      sync_warpgroup(place_.warpgroup);
      push_chunk(slab, first);
    }
  }

 private:
  using Part = Chunk<kPlan>;

  struct Biases {
    float upper = 0.0F;
    float lower = 0.0F;
  };

  MEGAMOE_DEVICE Biases biases(int slab) const {
    const Problem& problem = work_.here.args.call.problem;
    if (!problem.has_biases) return {};
    const int channel = work_.block().n() * kBlockRows + place_.upper_row(slab);
    const float* bias = work_.here.args.linear2.bias +
                        static_cast<std::int64_t>(work_.block().expert()) * problem.hidden;
    return {channel < problem.hidden ? bias[channel] : 0.0F,
            channel + 8 < problem.hidden ? bias[channel + 8] : 0.0F};
  }

  template <bool kIsModerate>
  MEGAMOE_DEVICE void finish_sums(Part& part,
                                  int first,
                                  const Scaling& scaling,
                                  const Biases& bias) {
    const BlockHeader<kPlan> header = work_.header();
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t) {
      float* sums = &part.sums[Part::upper(t)];
      scaling.apply<kIsModerate>(header.exponent(first + place_.token(t)), sums[0], sums[2]);
    }
    if (!work_.here.args.call.problem.has_biases) return;
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t) {
      const float weight = header.routing_weight(first + place_.token(t));
      float* sums = &part.sums[Part::upper(t)];
      sums[0] += bias.upper * weight;
      sums[2] += bias.lower * weight;
    }
  }

  // Where the tokens' rows begin on their source ranks: by one thread each, once a slab.
  MEGAMOE_DEVICE void note_destinations(int tokens) const {
    for (int token = place_.thread; token < tokens; token += kWarpgroupThreads)
      destinations()[token] = combine_row(work_.here.args.call, work_.header().source(token)).raw();
  }
  MEGAMOE_DEVICE Bfloat16** destinations() const {
    return ptx::shared_pointer<Bfloat16*>(work_.here.destinations(place_.warpgroup));
  }

  // Fragments to rows of tokens: a warp has 16 of the slab's 64 columns, two 16-byte chunks of each
  // row.
  MEGAMOE_DEVICE void turn(const float* sum) {
    const int lane = place_.lane();
    if constexpr (Part::kTokens == 8) {
      ptx::store_matrices_transposed(warp_chunk(lane % 8, lane / 8 % 2),
                                     ptx::to_bfloat16x2(sum[0], sum[1]),
                                     ptx::to_bfloat16x2(sum[2], sum[3]));
    } else {
      MEGAMOE_UNROLL
      for (int sixteen = 0; sixteen < Part::kTokens / 16; ++sixteen) {
        const float* s = sum + sixteen * 8;
        ptx::store_matrices_transposed(
            warp_chunk(sixteen * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2),
            ptx::to_bfloat16x2(s[0], s[1]),
            ptx::to_bfloat16x2(s[2], s[3]),
            ptx::to_bfloat16x2(s[4], s[5]),
            ptx::to_bfloat16x2(s[6], s[7]));
      }
    }
  }
  MEGAMOE_DEVICE std::uint32_t warp_chunk(int token, int half) const {
    return chunk_address(token, place_.warp() * 2 + half);
  }
  MEGAMOE_DEVICE std::uint32_t chunk_address(int token, int chunk) const {
    return staging_ + token * kSlabRows * 2 + (chunk ^ (token % 8)) * kChunkBytes;
  }

  MEGAMOE_DEVICE void push_chunk(int slab, int first) {
    constexpr int kChunks = kSlabRows * 2 / kChunkBytes;
    constexpr int kValues = kChunkBytes / 2;
    const Call& call = work_.here.args.call;
    const int channel = (work_.block().n() * kBlockSlabs + slab) * kSlabRows;
    const int rows = work_.block().rows() - first;
    MEGAMOE_UNROLL
    for (int at = 0; at < Part::kTokens * kChunks; at += kWarpgroupThreads) {
      const int i = at + place_.thread;
      const int token = i / kChunks;
      const int chunk = i % kChunks;
      const int to = channel + chunk * kValues;
      if (token >= rows || token >= Part::kTokens || to >= call.problem.hidden) continue;
      *reinterpret_cast<uint4*>(destinations()[first + token] + to) =
          ptx::load_shared_u32x4(chunk_address(token, chunk));
    }
  }

  const BlockWork<kPlan>& work_;
  FragmentPlace place_;
  std::uint32_t staging_;
};

}  // namespace megamoe::sm90
