#pragma once

#include <cstdint>

#include "machine/cuda/activation.cuh"
#include "machine/sm90/epilogue.cuh"
#include "machine/sm90/regroup.hpp"

// Linear 1's epilogue: a slab's sums become 32 columns of activations, which are one group of each
// row. A chunk of tokens at a time is turned in shared memory, so that four threads have all of a
// group; they quantise it and write it to the pool, in order and with its own scale.
namespace megamoe::sm90 {

using gpu::ActivationForm;

template <Plan kPlan>
class ActivationStore {
 public:
  static constexpr int kTokens = kPlan.block_m;

  MEGAMOE_DEVICE explicit ActivationStore(const BlockWork<kPlan>& work)
      : work_(work), place_(FragmentPlace::now()), staging_(work.here.staging(place_.warpgroup)) {}

  MEGAMOE_DEVICE void push(int slab, const float (&sum)[kTokens / 2]) {
    const int row = place_.upper_row(slab);
    const Scaling scaling(work_.header().base(row), work_.header().base(row + 8));
    const Biases bias = biases(slab);
    const Call& call = work_.here.args.call;
    const ActivationForm form(call.problem.activation);
    const GroupPlace group(call, call.ring.row(work_.block().pool(), 0), group_of(slab));
    const int tokens = work_.block().rows();
    MEGAMOE_NO_UNROLL
    for (int number = 0; number < Part::kCount; ++number) {
      const int first = number * Part::kTokens;
      if (first >= tokens) break;
      Part part(sum, number);
      sync_warpgroup(place_.warpgroup);  // the chunk before has left
      // The usual case has code of its own without branches: sixteen activations side by side.
      if (scaling.is_moderate(work_.lane_exponent(first)) && form.is_approximate)
        activate<true>(part, first, scaling, bias, form);
      else
        activate<false>(part, first, scaling, bias, form);
      sync_warpgroup(place_.warpgroup);
      quantise(group, first, tokens);
    }
  }

 private:
  using Part = Chunk<kPlan>;
  static constexpr int kValues = 8;                         // of a group, a thread
  static constexpr int kGroupThreads = kGroup / kValues;    // that have a group
  static constexpr int kRowBytes = kGroup * sizeof(float);  // of the staging

  // Where the slab's group of the block's rows lies in the pool.
  struct GroupPlace {
    std::byte* codes;
    std::byte* scale;
    int row_bytes;

    MEGAMOE_DEVICE GroupPlace(const Call& call, std::int64_t first_row, int group) {
      const ActivationRow row{call.problem.intermediate};
      std::byte* first = call.local(activation_row(call, kPlan.operands, first_row));
      codes = first + group * kGroup;
      scale = first + row.scales() + group;
      row_bytes = row.bytes();
    }
  };
  MEGAMOE_DEVICE int group_of(int slab) const { return work_.block().n() * kBlockSlabs + slab; }

  struct Biases {
    float gate = 0.0F;
    float up = 0.0F;
  };

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

  // Columns come in runs of eight, one for each of the threads that will have the group; they are
  // permuted by the token, so that the writes of a warp meet all banks.
  static MEGAMOE_DEVICE std::uint32_t run_offset(int token, int run) {
    return static_cast<std::uint32_t>(token * kRowBytes + (run ^ (token / 2 % kGroupThreads)) *
                                                              kValues *
                                                              static_cast<int>(sizeof(float)));
  }

  template <bool kIsUsual>
  MEGAMOE_DEVICE void activate(Part& part,
                               int first,
                               const Scaling& scaling,
                               const Biases& bias,
                               const ActivationForm& form) {
    const BlockHeader<kPlan> header = work_.header();
    const std::uint32_t to = staging_ + place_.lane() / 4 * static_cast<int>(sizeof(float));
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t) {
      const int token = place_.token(t);
      float* sums = &part.sums[Part::upper(t)];
      scaling.apply<kIsUsual>(header.exponent(first + token), sums[0], sums[2]);
      const std::uint32_t rounded = ptx::to_bfloat16x2(sums[0] + bias.gate, sums[2] + bias.up);
      const float gate = __uint_as_float(rounded << 16);
      const float up = __uint_as_float(rounded & 0xFFFF0000U);
      const float weight = header.routing_weight(first + token);
      sums[0] = kIsUsual ? form.approximate(gate, up, weight) : form(gate, up, weight);
    }
    // Not before all are there: a store would keep the loads of the next one behind it.
    MEGAMOE_UNROLL
    for (int t = 0; t < Part::kPairs; ++t)
      ptx::store_shared_f32(to + run_offset(place_.token(t), place_.warp()),
                            part.sums[Part::upper(t)]);
  }

  // numerics/quantize.hpp: the scale from the group's largest, as a byte and as the factor
  // 2^(127 - byte) in the bits of an fp32. Zeros come out as zeros under any factor.
  MEGAMOE_DEVICE void quantise(const GroupPlace& group, int first, int tokens) {
    constexpr std::uint32_t kInfinity = 0x7F800000U;
    const int token = place_.thread / kGroupThreads;
    const int run = place_.thread % kGroupThreads;
    if (token >= Part::kTokens) return;  // whole warps
    const std::uint32_t from = staging_ + run_offset(token, run);
    const float4 v = ptx::load_shared_f32x4(from);
    const float4 w = ptx::load_shared_f32x4(from + 16);
    float most = ptx::largest_or_nan(ptx::largest_or_nan(v.x, v.y), ptx::largest_or_nan(v.z, v.w));
    most = ptx::largest_or_nan(
        most, ptx::largest_or_nan(ptx::largest_or_nan(w.x, w.y), ptx::largest_or_nan(w.z, w.w)));
    MEGAMOE_UNROLL
    for (int apart = 1; apart < kGroupThreads; apart *= 2)
      most = ptx::largest_or_nan(most, __shfl_xor_sync(0xFFFFFFFFU, most, apart));
    if (first + token >= tokens) return;
    const std::uint32_t largest = __float_as_uint(most);
    const bool is_finite = largest < kInfinity;
    const int byte = max(static_cast<int>((largest + 0x1FFFFFU) >> 23) - 8, 0);
    const float factor = __uint_as_float(static_cast<std::uint32_t>(254 - byte) << 23);
    const std::int64_t row = std::int64_t{first + token} * group.row_bytes;
    const uint2 codes{four_codes(v, factor), four_codes(w, factor)};
    constexpr std::uint32_t kFourNan = kNanCode * 0x01010101U;
    *reinterpret_cast<uint2*>(group.codes + row + run * kValues) =
        is_finite ? codes : uint2{kFourNan, kFourNan};
    if (run == 0)
      group.scale[row] = static_cast<std::byte>(is_finite ? byte : static_cast<int>(kNanScaleByte));
  }

  static MEGAMOE_DEVICE std::uint32_t four_codes(const float4& v, float factor) {
    return ptx::to_float8x2(v.x * factor, v.y * factor) |
           (ptx::to_float8x2(v.z * factor, v.w * factor) << 16);
  }

  const BlockWork<kPlan>& work_;
  FragmentPlace place_;
  std::uint32_t staging_;
};

}  // namespace megamoe::sm90
