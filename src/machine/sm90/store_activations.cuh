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

  // `set`: the shared address of the set that the block uses.
  MEGAMOE_DEVICE ActivationStore(const BlockWork<kPlan>& work, std::uint32_t set)
      : work_(work), set_(set) {}

  // One slab's sums, which become activations in place: sum[2j + i] is token 8j + 2 * (lane % 4) + i.
  MEGAMOE_DEVICE void stage(int slab, float (&sum)[kTokens / 2]) {
    sync_warpgroup(work_.place.warpgroup);  // the slab before has read its maxima
    activate(slab, sum);
    sync_warpgroup(work_.place.warpgroup);
    quantise(slab, sum);
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

  struct Biases {
    float gate = 0.0F;
    float up = 0.0F;
  };
  MEGAMOE_DEVICE Biases biases(int slab) const {
    const Problem& problem = work_.here.args.call.problem;
    if (!problem.has_biases) return {};
    const int row = work_.block.n() * kBlockRows + work_.upper_row(slab);
    const float* bias = work_.here.args.linear1.bias +
                        static_cast<std::int64_t>(work_.block.expert()) * 2 * problem.intermediate;
    return {bias[gate_up_row(row, problem.intermediate)],
            bias[gate_up_row(row + 8, problem.intermediate)]};
  }

  // Tokens are taken a few at a time: what is loaded, computed, exchanged and stored for them overlaps, which it would
  // not do token by token, since shared-memory accesses keep their order.
  static constexpr int kBatch = kTokens / 4 < 8 ? kTokens / 4 : 8;

  MEGAMOE_DEVICE void activate(int slab, float (&sum)[kTokens / 2]) {
    const int row = work_.upper_row(slab);
    const PowerPair gate_power = work_.header.base_power(row);
    const PowerPair up_power = work_.header.base_power(row + 8);
    const Biases bias = biases(slab);
    const ActivationForm form(work_.here.args.call.problem.activation);
    MEGAMOE_UNROLL
    for (int first = 0; first < kTokens / 4; first += kBatch) {
      int2 exponents[kBatch / 2];
      float2 weights[kBatch / 2];
      MEGAMOE_UNROLL
      for (int i = 0; i < kBatch / 2; ++i) {
        exponents[i] = work_.header.exponents(work_.token_of(first + 2 * i));
        weights[i] = work_.header.routing_weights(work_.token_of(first + 2 * i));
      }
      MEGAMOE_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const int t = first + i;
        const int at = t / 2 * 4 + t % 2;
        const PowerPair power(i % 2 == 0 ? exponents[i / 2].x : exponents[i / 2].y);
        const float gate = scaled(sum[at], gate_power, power) + bias.gate;
        const float up = scaled(sum[at + 2], up_power, power) + bias.up;
        const std::uint32_t rounded = ptx::to_bfloat16x2(gate, up);
        sum[t] = form(__uint_as_float(rounded << 16),
                      __uint_as_float(rounded & 0xFFFF0000U),
                      i % 2 == 0 ? weights[i / 2].x : weights[i / 2].y);
      }
      note_largest(first, sum);
    }
  }

  static MEGAMOE_DEVICE float scaled(float sum, const PowerPair& row, const PowerPair& token) {
    return sum * row.first * token.first * row.second * token.second;
  }

  // The largest of the warp's eight columns of each token of a batch: lanes with the same lane % 4.
  MEGAMOE_DEVICE void note_largest(int first, const float (&activations)[kTokens / 2]) {
    std::uint32_t bits[kBatch];
    MEGAMOE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      bits[i] = __float_as_uint(activations[first + i]) & 0x7FFFFFFFU;
    MEGAMOE_UNROLL
    for (int apart = 4; apart < kWarpThreads; apart *= 2) {
      MEGAMOE_UNROLL
      for (int i = 0; i < kBatch; ++i)
        bits[i] = max(bits[i], __shfl_xor_sync(0xFFFFFFFFU, bits[i], apart));
    }
    if (work_.place.lane() >= 4) return;
    MEGAMOE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      ptx::store_shared_u32(
          largest_address(work_.token_of(first + i)) + work_.place.warp() * 4, bits[i]);
  }

  MEGAMOE_DEVICE void quantise(int slab, const float (&activations)[kTokens / 2]) {
    MEGAMOE_UNROLL
    for (int first = 0; first < kTokens / 4; first += kBatch) {
      std::uint32_t largest[kBatch];
      MEGAMOE_UNROLL
      for (int i = 0; i < kBatch; ++i) {
        const uint4 of_warps = ptx::load_shared_u32x4(largest_address(work_.token_of(first + i)));
        largest[i] = max(max(of_warps.x, of_warps.y), max(of_warps.z, of_warps.w));
      }
      MEGAMOE_UNROLL
      for (int i = 0; i < kBatch; ++i)
        store_code(slab, first + i, activations[first + i], largest[i]);
    }
  }

  MEGAMOE_DEVICE void store_code(int slab, int t, float activation, std::uint32_t largest) {
    const int column = slab * kGroup + work_.place.warp() * 8 + work_.place.lane() / 4;
    const int token = work_.token_of(t);
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
