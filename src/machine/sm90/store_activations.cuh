#pragma once

#include <cstdint>

#include "machine/cuda/activation.cuh"
#include "machine/sm90/epilogue.cuh"
#include "machine/sm90/regroup.cuh"
#include "numerics/quantize.hpp"

// Linear 1's epilogue. First each warpgroup turns its slab's sums into 32 columns of E4M3 with an
// exponent a row, in shared memory; when all four slabs of the block are there, the 128 columns are
// brought to one exponent a row and go to the pool's second buffer, K permuted, as one step's tile
// of linear 2.
namespace megamoe::sm90 {

using gpu::ActivationForm;

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
      : work_(work), place_(FragmentPlace::now()), set_(set) {}

  // One slab's sums to 32 columns of the set.
  MEGAMOE_DEVICE void stage(int slab, const float (&sum)[kTokens / 2]) {
    const int row = place_.upper_row(slab);
    const RowPair rows{
        work_.header().base_power(row), work_.header().base_power(row + 8), biases(slab)};
    const int tokens = work_.block().rows();
    sync_warpgroup(place_.warpgroup);  // the slab before has read its maxima
    MEGAMOE_NO_UNROLL
    for (int number = 0; number < Part::kCount; ++number) {
      const int first = number * Part::kTokens;
      if (first >= tokens) break;
      const Part part(sum, number);
      float activations[Part::kPairs];
      activate(part, first, rows, activations);
      note_largest(first, activations);
      sync_warpgroup(place_.warpgroup);
      quantise(slab, first, activations);
    }
  }

  // A slab past the last: its columns are zeros of the padding.
  MEGAMOE_DEVICE void stage_nothing(int slab) {
    for (int token = place_.thread; token < kTokens; token += kWarpgroupThreads) {
      auto* columns = reinterpret_cast<uint4*>(&view().codes[token][slab * kGroup]);
      columns[0] = columns[1] = uint4{};
      view().exponents[token][slab] = Set::kNothingAsked;
    }
  }

  // This warpgroup has staged all its slabs. True for the last one, which then sees all of the set.
  MEGAMOE_DEVICE bool is_last() {
    const std::uint32_t answer =
        work_.here.activations() + offsetof(Staging, is_last) + place_.warpgroup * 4;
    sync_warpgroup(place_.warpgroup);
    if (place_.thread == 0) {
      const std::uint32_t before = ptx::add_shared_u32(set_ + offsetof(Set, staged), 1);
      ptx::store_shared_u32(answer, before == kPlan.math_warpgroups - 1);
    }
    sync_warpgroup(place_.warpgroup);
    return ptx::load_shared_u32(answer) != 0;
  }

  // The last warpgroup: the block's rows to the pool; then the set may be filled anew.
  MEGAMOE_DEVICE void write_out() {
    store_rows();
    // Linear 2's loader reads the rows through the copy engine.
    ptx::fence_proxy_async();
    sync_warpgroup(place_.warpgroup);
    if (place_.thread != 0) return;
    ptx::store_shared_u32(set_ + offsetof(Set, staged), 0);
    ptx::mbarrier_arrive(set_ + offsetof(Set, empty));
  }

 private:
  MEGAMOE_DEVICE void store_rows() {
    constexpr int kChunks = kStepDepth * element_bytes(kPlan.operands) / kChunkBytes;
    const Call& call = work_.here.args.call;
    const Workspace& w = call.workspace;
    const std::int64_t first = call.ring.row(work_.block().pool(), 0);
    const int n = work_.block().n();
    const int rows = work_.block().rows();
    std::byte* tile = call.local(w.linear2_rows) + first * w.format.linear2_row_bytes +
                      std::int64_t{n} * kPlan.tile_bytes();
    auto* scales = reinterpret_cast<float*>(call.local(w.linear2_scales) +
                                            first * w.format.linear2_scale_bytes) +
                   std::int64_t{n} * kTokens;
    for (int i = place_.thread; i < rows * kChunks; i += kWarpgroupThreads) {
      const int token = i / kChunks;
      const int chunk = i % kChunks;
      const std::uint32_t exponents =
          *reinterpret_cast<const std::uint32_t*>(view().exponents[token]);
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

  MEGAMOE_DEVICE std::uint32_t* largest_of(int token) const {
    auto& staging = *ptx::shared_pointer<Staging>(work_.here.activations());
    return staging.largest[place_.warpgroup][token];
  }
  MEGAMOE_DEVICE Set& view() const { return *ptx::shared_pointer<Set>(set_); }

  MEGAMOE_DEVICE Biases biases(int slab) const {
    const Problem& problem = work_.here.args.call.problem;
    if (!problem.has_biases) return {};
    const int row = work_.block().n() * kBlockRows + place_.upper_row(slab);
    const float* bias =
        work_.here.args.linear1.bias +
        static_cast<std::int64_t>(work_.block().expert()) * 2 * problem.intermediate;
    return {bias[gate_up_row(row, problem.intermediate)],
            bias[gate_up_row(row + 8, problem.intermediate)]};
  }

  MEGAMOE_DEVICE void activate(const Part& part,
                               int first,
                               const RowPair& rows,
                               float (&activations)[Part::kPairs]) {
    const ActivationForm form(work_.here.args.call.problem.activation);
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t) {
      const int token = place_.token_of(first, t);
      activations[t] = activation(form,
                                  rows,
                                  &part.sums[Part::upper(t)],
                                  work_.header().exponent(token),
                                  work_.header().routing_weight(token));
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
    return form(
        __uint_as_float(rounded << 16), __uint_as_float(rounded & 0xFFFF0000U), routing_weight);
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
    if (place_.lane() >= 4) return;
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t)
      largest_of(place_.token_of(first, t))[place_.warp()] = bits[t];
  }

  MEGAMOE_DEVICE void quantise(int slab, int first, const float (&activations)[Part::kPairs]) {
    std::uint32_t largest[Part::kPairs];
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t) {
      const uint4 of_warps = *reinterpret_cast<const uint4*>(largest_of(place_.token_of(first, t)));
      largest[t] = max(max(of_warps.x, of_warps.y), max(of_warps.z, of_warps.w));
    }
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t)
      store_code(slab, place_.token_of(first, t), activations[t], largest[t]);
  }

  // numerics/quantize.hpp for one value: the scale from the group's largest, as a byte and as the
  // factor 2^(127 - byte) in the bits of an fp32. Zeros come out as zeros under any factor.
  MEGAMOE_DEVICE void store_code(int slab, int token, float activation, std::uint32_t largest) {
    const int column = slab * kGroup + place_.warp() * 8 + place_.lane() / 4;
    constexpr std::uint32_t kInfinity = 0x7F800000U;
    const int byte = max(static_cast<int>((largest + 0x1FFFFFU) >> 23) - 8, 0);
    const float factor = __uint_as_float(static_cast<std::uint32_t>(254 - byte) << 23);
    const std::uint32_t code = ptx::to_float8x2(activation * factor, 0.0F);
    const bool is_finite = largest < kInfinity;
    view().codes[token][column] = static_cast<std::uint8_t>(is_finite ? code : kNanCode);
    if (place_.warp() != 0 || place_.lane() >= 4) return;
    const bool counts = is_finite && largest != 0;
    view().exponents[token][slab] =
        static_cast<std::int8_t>(counts ? byte - Ue8m0::kBias : Set::kNothingAsked);
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

  // A word of each of the row's four groups; codes of a group that asks nothing are zeros or NaN
  // and stay.
  MEGAMOE_DEVICE uint4 regrouped_chunk(int token,
                                       int chunk,
                                       std::uint32_t exponents,
                                       int exponent) const {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q)
      words[q] = scale_codes(
          *reinterpret_cast<const std::uint32_t*>(&view().codes[token][q * kGroup + chunk * 4]),
          exponent_of(exponents, q) - exponent);
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  // Two codes of each group, at their full size.
  MEGAMOE_DEVICE uint4 bfloat16_chunk(int token, int chunk, std::uint32_t exponents) const {
    std::uint32_t words[kGroupsPerStep];
    MEGAMOE_UNROLL
    for (int q = 0; q < kGroupsPerStep; ++q)
      words[q] = two_codes_to_bfloat16(
          *reinterpret_cast<const std::uint16_t*>(&view().codes[token][q * kGroup + chunk * 2]),
          exponent_of(exponents, q));
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  const BlockWork<kPlan>& work_;
  FragmentPlace place_;
  std::uint32_t set_;
};

}  // namespace megamoe::sm90
