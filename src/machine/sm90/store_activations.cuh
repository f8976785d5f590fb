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

  MEGAMOE_DEVICE ActivationStore(const BlockWork<kPlan>& work, const MathPlace& place)
      : work_(work), place_(place), staging_(work.here.shared.staging.activations) {}

  // One slab's sums, which become activations in place: sum[2j + i] is token 8j + 2 * (lane % 4) + i.
  MEGAMOE_DEVICE void stage(int slab, float (&sum)[kTokens / 2]) {
    sync_warpgroup(place_.warpgroup);  // the pass before has read its maxima
    activate(slab, sum);
    sync_warpgroup(place_.warpgroup);
    quantise(slab, sum);
  }

  // A slab past the last: its columns are zeros of the padding.
  MEGAMOE_DEVICE void stage_nothing(int slab) {
    for (int token = place_.thread; token < kTokens; token += kWarpgroupThreads) {
      auto* columns = reinterpret_cast<uint4*>(&staging_.codes[token][slab * kGroup]);
      columns[0] = columns[1] = uint4{};
      staging_.exponents[token][slab] = Staging::kNothingAsked;
    }
  }

  // After a barrier of all math warps: the block's rows to the pool, by all of them.
  MEGAMOE_DEVICE void write_out() {
    constexpr int kChunks = kStepDepth * element_bytes(kPlan.operands) / kChunkBytes;
    const Call& call = work_.here.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t first = call.ring.row(work_.block.pool, 0);
    std::byte* tile = call.local(w.linear2_rows) + first * w.format.linear2_row_bytes +
                      std::int64_t{work_.block.n} * kPlan.tile_bytes();
    auto* scales = reinterpret_cast<float*>(call.local(w.linear2_scales) +
                                            first * w.format.linear2_scale_bytes) +
                   std::int64_t{work_.block.n} * kTokens;
    for (int i = static_cast<int>(threadIdx.x); i < work_.block.rows * kChunks;
         i += kPlan.math_threads()) {
      const int token = i / kChunks;
      const int chunk = i % kChunks;
      auto* to = reinterpret_cast<uint4*>(tile + token_chunk_offset(kTokens, token, chunk));
      if constexpr (kPlan.operands == Operands::kFloat8) {
        const int exponent = range_exponent(token);
        *to = regrouped_chunk(token, chunk, exponent);
        if (chunk == 0) scales[scale_place(kTokens, token)] = scale_value(exponent);
      } else {
        *to = bfloat16_chunk(token, chunk);
      }
    }
  }

 private:
  MEGAMOE_DEVICE void activate(int slab, float (&sum)[kTokens / 2]) {
    const RowPair rows(work_.here.args.linear1, work_.layout, work_.block, slab, place_);
    const Problem& problem = work_.here.args.call.problem;
    const ActivationForm form(problem.activation);
    float gate_bias = 0.0F;
    float up_bias = 0.0F;
    if (problem.has_biases) {
      const float* bias = work_.here.args.linear1.bias +
                          static_cast<std::int64_t>(work_.block.expert) * work_.layout.rows;
      gate_bias = bias[gate_up_row(rows.upper, problem.intermediate)];
      up_bias = bias[gate_up_row(rows.upper + 8, problem.intermediate)];
    }
    MEGAMOE_UNROLL
    for (int t = 0; t < kTokens / 4; ++t) {
      const int token = t / 2 * 8 + place_.lane() % 4 * 2 + t % 2;
      const int at = t / 2 * 4 + t % 2;
      const PowerPair power(work_.header.exponent[token]);
      const float gate = scaled(sum[at], rows.upper_power, power) + gate_bias;
      const float up = scaled(sum[at + 2], rows.lower_power, power) + up_bias;
      const std::uint32_t rounded = ptx::to_bfloat16x2(gate, up);
      const float activation = form(__uint_as_float(rounded << 16),
                                    __uint_as_float(rounded & 0xFFFF0000U),
                                    work_.header.routing_weight[token]);
      sum[t] = activation;
      note_largest(token, activation);
    }
  }

  static MEGAMOE_DEVICE float scaled(float sum, const PowerPair& row, const PowerPair& token) {
    return sum * row.first * token.first * row.second * token.second;
  }

  // The largest of the warp's eight columns of a token: lanes with the same lane % 4.
  MEGAMOE_DEVICE void note_largest(int token, float value) {
    std::uint32_t bits = __float_as_uint(value) & 0x7FFFFFFFU;
    MEGAMOE_UNROLL
    for (int apart = 4; apart < kWarpThreads; apart *= 2)
      bits = max(bits, __shfl_xor_sync(0xFFFFFFFFU, bits, apart));
    if (place_.lane() < 4) staging_.largest[place_.warpgroup][token][place_.warp()] = bits;
  }

  MEGAMOE_DEVICE void quantise(int slab, const float (&activations)[kTokens / 2]) {
    const int column = slab * kGroup + place_.warp() * 8 + place_.lane() / 4;
    MEGAMOE_UNROLL
    for (int t = 0; t < kTokens / 4; ++t) {
      const int token = t / 2 * 8 + place_.lane() % 4 * 2 + t % 2;
      const uint4 of_warps =
          *reinterpret_cast<const uint4*>(staging_.largest[place_.warpgroup][token]);
      const std::uint32_t largest =
          max(max(of_warps.x, of_warps.y), max(of_warps.z, of_warps.w));
      const Ue8m0 scale = activation_scale(largest);
      const bool is_finite = !is_nan(scale);
      const std::uint32_t code =
          is_finite ? ptx::to_float8x2(activations[t] * reciprocal(scale), 0.0F) & 0xFFU : kNanCode;
      staging_.codes[token][column] = static_cast<std::uint8_t>(code);
      if (place_.warp() == 0 && place_.lane() < 4)
        staging_.exponents[token][slab] =
            is_finite && largest != 0 ? static_cast<std::int8_t>(scale.bits - Ue8m0::kBias)
                                      : Staging::kNothingAsked;
    }
  }

  MEGAMOE_DEVICE int exponent_of(int token, int group) const {
    return staging_.exponents[token][group];
  }
  // Groups come normalised from the quantiser, so their exponents are what they ask for.
  MEGAMOE_DEVICE int range_exponent(int token) const {
    const int asked = max(max(exponent_of(token, 0), exponent_of(token, 1)),
                          max(exponent_of(token, 2), exponent_of(token, 3)));
    return asked == Staging::kNothingAsked ? 0 : asked;
  }

  // A word of each of the row's four groups; codes of a group that asks nothing are zeros or NaN and stay.
  MEGAMOE_DEVICE uint4 regrouped_chunk(int token, int chunk, int exponent) const {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q) {
      const std::uint32_t four =
          *reinterpret_cast<const std::uint32_t*>(&staging_.codes[token][q * kGroup + chunk * 4]);
      words[q] = scale_codes(four, exponent_of(token, q) - exponent);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  // Two codes of each group, at their full size.
  MEGAMOE_DEVICE uint4 bfloat16_chunk(int token, int chunk) const {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q) {
      const std::uint32_t two =
          *reinterpret_cast<const std::uint16_t*>(&staging_.codes[token][q * kGroup + chunk * 2]);
      words[q] = two_codes_to_bfloat16(two, exponent_of(token, q));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  const BlockWork<kPlan>& work_;
  MathPlace place_;
  Staging& staging_;
};

}  // namespace megamoe::sm90
