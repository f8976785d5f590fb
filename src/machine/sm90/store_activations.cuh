#pragma once

#include <cstdint>

#include "machine/sm90/activation.cuh"
#include "machine/sm90/epilogue.cuh"
#include "machine/sm90/regroup.cuh"
#include "numerics/quantize.hpp"

// Linear 1's epilogue. First each warpgroup turns its slab's sums into 32 columns of E4M3 with an exponent a row, in
// shared memory; when all four slabs of the block are there, the 128 columns are brought to one exponent a row and
// go to the pool's second buffer, K permuted, as one step's tile of linear 2.
namespace megamoe::sm90 {

template <Plan kPlan>
class ActivationStore {
 public:
  static constexpr int kTokens = kPlan.block_m;
  using Staging = ActivationStaging<kPlan>;
  using Set = ActivationSet<kPlan>;
  using Part = Chunk<kPlan>;

  // What a thread's two rows, a gate and its up, bring to the sums.
  struct Biases {
    float gate = 0.0F;
    float up = 0.0F;
  };
  struct RowPair {
    PowerPair gate, up;
    Biases bias;
  };

  // `set`: the shared address of the set that the block uses.
  MEGAMOE_DEVICE ActivationStore(const BlockWork<kPlan>& work, std::uint32_t set)
      : work_(work), set_(set) {}

  // One slab's sums to 32 columns of the set.
  MEGAMOE_DEVICE void stage(int slab, const float (&sum)[kTokens / 2]) {
    const int row = work_.upper_row(slab);
    const RowPair rows{work_.header.base_power(row), work_.header.base_power(row + 8), biases(slab)};
    const int tokens = work_.block.rows();
    sync_warpgroup(work_.place.warpgroup);  // the slab before has read its maxima
    MEGAMOE_NO_UNROLL
    for (int number = 0; number < Part::kCount; ++number) {
      const int first = number * Part::kTokens;
      if (first >= tokens) break;
      const Part part(sum, number);
      float activations[Part::kPairs];
      activate(part, first, rows, activations);
      note_largest(first, activations);
      sync_warpgroup(work_.place.warpgroup);
      quantise(slab, first, activations);
    }
  }

  // A slab past the last: its columns are zeros of the padding.
  MEGAMOE_DEVICE void stage_nothing(int slab) {
    for (int token = work_.place.thread; token < kTokens; token += kWarpgroupThreads) {
      ptx::store_shared_u32x4(code_address(token, slab * kGroup), uint4{});
      ptx::store_shared_u32x4(code_address(token, slab * kGroup + 16), uint4{});
      ptx::store_shared_u8(exponent_address(token, slab), kNothingAskedByte);
    }
  }

  // This warpgroup has staged all its slabs. True for the last one, which then sees all of the set.
  MEGAMOE_DEVICE bool is_last() {
    const std::uint32_t answer = work_.here.activations() + offsetof(Staging, is_last) +
                                 work_.place.warpgroup * 4;
    sync_warpgroup(work_.place.warpgroup);
    if (work_.place.thread == 0) {
      const std::uint32_t before = ptx::add_shared_u32(set_ + offsetof(Set, staged), 1);
      ptx::store_shared_u32(answer, before == kPlan.math_warpgroups - 1);
    }
    sync_warpgroup(work_.place.warpgroup);
    return ptx::load_shared_u32(answer) != 0;
  }

  // The last warpgroup: the block's rows to the pool; then the set may be filled anew.
  MEGAMOE_DEVICE void write_out() {
    store_rows();
    // Linear 2's loader reads the rows through the copy engine.
    ptx::fence_proxy_async();
    sync_warpgroup(work_.place.warpgroup);
    if (work_.place.thread != 0) return;
    ptx::store_shared_u32(set_ + offsetof(Set, staged), 0);
    ptx::mbarrier_arrive(set_ + offsetof(Set, empty));
  }

 private:
  MEGAMOE_DEVICE void store_rows() {
    constexpr int kChunks = kStepDepth * element_bytes(kPlan.operands) / kChunkBytes;
    const Call& call = work_.here.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t first = call.ring.row(work_.block.pool(), 0);
    const int n = work_.block.n();
    const int rows = work_.block.rows();
    std::byte* tile = call.local(w.linear2_rows) + first * w.format.linear2_row_bytes +
                      std::int64_t{n} * kPlan.tile_bytes();
    auto* scales = reinterpret_cast<float*>(call.local(w.linear2_scales) +
                                            first * w.format.linear2_scale_bytes) +
                   std::int64_t{n} * kTokens;
    for (int i = work_.place.thread; i < rows * kChunks; i += kWarpgroupThreads) {
      const int token = i / kChunks;
      const int chunk = i % kChunks;
      const std::uint32_t exponents = ptx::load_shared_u32(exponent_address(token, 0));
      auto* to = reinterpret_cast<uint4*>(tile + token_chunk_offset(kTokens, token, chunk));
      if constexpr (kPlan.operands == Operands::kFloat8) {
        const int exponent = range_exponent(exponents);
        *to = regrouped_chunk(token, chunk, exponents, exponent);
        if (chunk == 0) scales[scale_place(kTokens, token)] = scale_value(exponent);
      } else {
        *to = bfloat16_chunk(token, chunk, exponents);
      }
    }
  }

  static constexpr std::uint32_t kNothingAskedByte =
      static_cast<std::uint8_t>(Set::kNothingAsked);

  MEGAMOE_DEVICE std::uint32_t code_address(int token, int column) const {
    return set_ + offsetof(Set, codes) + token * Set::kPitch + column;
  }
  MEGAMOE_DEVICE std::uint32_t exponent_address(int token, int slab) const {
    return set_ + offsetof(Set, exponents) + token * kGroupsPerStep + slab;
  }
  MEGAMOE_DEVICE std::uint32_t largest_address(int token) const {
    return work_.here.activations() + offsetof(Staging, largest) +
           (work_.place.warpgroup * kTokens + token) * 16;
  }

  MEGAMOE_DEVICE Biases biases(int slab) const {
    const Problem& problem = work_.here.args.call.problem;
    if (!problem.has_biases) return {};
    const int row = work_.block.n() * kBlockRows + work_.upper_row(slab);
    const float* bias = work_.here.args.linear1.bias +
                        static_cast<std::int64_t>(work_.block.expert()) * 2 * problem.intermediate;
    return {bias[gate_up_row(row, problem.intermediate)],
            bias[gate_up_row(row + 8, problem.intermediate)]};
  }

  MEGAMOE_DEVICE void activate(const Part& part,
                               int first,
                               const RowPair& rows,
                               float (&activations)[Part::kPairs]) {
    const ActivationForm form(work_.here.args.call.problem.activation);
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; t += 2) {
      const int2 exponents = work_.header.exponents(work_.token_of(first, t));
      const float2 weights = work_.header.routing_weights(work_.token_of(first, t));
      activations[t] =
          activation(form, rows, &part.sums[Part::upper(t)], exponents.x, weights.x);
      activations[t + 1] =
          activation(form, rows, &part.sums[Part::upper(t + 1)], exponents.y, weights.y);
    }
  }

  // `sums`: the gate's, and 2 further the up's.
  static MEGAMOE_DEVICE float activation(const ActivationForm& form,
                                         const RowPair& rows,
                                         const float* sums,
                                         int exponent,
                                         float routing_weight) {
    const PowerPair power(exponent);
    const float gate = scaled(sums[0], rows.gate, power) + rows.bias.gate;
    const float up = scaled(sums[2], rows.up, power) + rows.bias.up;
    const std::uint32_t rounded = ptx::to_bfloat16x2(gate, up);
    return form(__uint_as_float(rounded << 16),
                __uint_as_float(rounded & 0xFFFF0000U),
                routing_weight);
  }

  static MEGAMOE_DEVICE float scaled(float sum, const PowerPair& row, const PowerPair& token) {
    return sum * row.first * token.first * row.second * token.second;
  }

  // The largest of the warp's eight columns of each token: lanes with the same lane % 4.
  MEGAMOE_DEVICE void note_largest(int first, const float (&activations)[Part::kPairs]) {
    std::uint32_t bits[Part::kPairs];
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t)
      bits[t] = __float_as_uint(activations[t]) & 0x7FFFFFFFU;
    MEGAMOE_UNROLL
    for (int apart = 4; apart < kWarpThreads; apart *= 2) {
      MEGAMOE_UNROLL
      for (int t = 0; t < Part::kPairs; ++t)
        bits[t] = max(bits[t], __shfl_xor_sync(0xFFFFFFFFU, bits[t], apart));
    }
    if (work_.place.lane() >= 4) return;
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t)
      ptx::store_shared_u32(largest_address(work_.token_of(first, t)) + work_.place.warp() * 4,
                            bits[t]);
  }

  MEGAMOE_DEVICE void quantise(int slab, int first, const float (&activations)[Part::kPairs]) {
    std::uint32_t largest[Part::kPairs];
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t) {
      const uint4 of_warps = ptx::load_shared_u32x4(largest_address(work_.token_of(first, t)));
      largest[t] = max(max(of_warps.x, of_warps.y), max(of_warps.z, of_warps.w));
    }
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t)
      store_code(slab, work_.token_of(first, t), activations[t], largest[t]);
  }

  MEGAMOE_DEVICE void store_code(int slab, int token, float activation, std::uint32_t largest) {
    const int column = slab * kGroup + work_.place.warp() * 8 + work_.place.lane() / 4;
    const Ue8m0 scale = activation_scale(largest);
    const bool is_finite = !is_nan(scale);
    const std::uint32_t code =
        is_finite ? ptx::to_float8x2(activation * reciprocal(scale), 0.0F) & 0xFFU : kNanCode;
    ptx::store_shared_u8(code_address(token, column), code);
    if (work_.place.warp() != 0 || work_.place.lane() >= 4) return;
    ptx::store_shared_u8(exponent_address(token, slab),
                         is_finite && largest != 0
                             ? static_cast<std::uint32_t>(scale.bits - Ue8m0::kBias)
                             : kNothingAskedByte);
  }

  static MEGAMOE_DEVICE int exponent_of(std::uint32_t exponents, int group) {
    return static_cast<std::int8_t>(exponents >> (8 * group));
  }
  // Groups come normalised from the quantiser, so their exponents are what they ask for.
  static MEGAMOE_DEVICE int range_exponent(std::uint32_t exponents) {
    const int asked = max(max(exponent_of(exponents, 0), exponent_of(exponents, 1)),
                          max(exponent_of(exponents, 2), exponent_of(exponents, 3)));
    return asked == Set::kNothingAsked ? 0 : asked;
  }

  // A word of each of the row's four groups; codes of a group that asks nothing are zeros or NaN and stay.
  MEGAMOE_DEVICE uint4 regrouped_chunk(int token,
                                       int chunk,
                                       std::uint32_t exponents,
                                       int exponent) const {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q)
      words[q] = scale_codes(ptx::load_shared_u32(code_address(token, q * kGroup + chunk * 4)),
                             exponent_of(exponents, q) - exponent);
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  // Two codes of each group, at their full size.
  MEGAMOE_DEVICE uint4 bfloat16_chunk(int token, int chunk, std::uint32_t exponents) const {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q)
      words[q] =
          two_codes_to_bfloat16(ptx::load_shared_u16(code_address(token, q * kGroup + chunk * 2)),
                                exponent_of(exponents, q));
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  const BlockWork<kPlan>& work_;
  std::uint32_t set_;
};

}  // namespace megamoe::sm90
