#include "runtime/gpu/sm100_weights.hpp"

#include "machine/sm100/pack.hpp"
#include "runtime/gpu/packing_threads.hpp"

namespace megamoe {

Sm100Weights::Sm100Weights(const Problem& problem, DeviceMemory& memory, const Encode& encode)
    : GpuWeights(problem, memory),
      problem_(problem),
      linear1_(make_linear_of(Phase::kLinear1)),
      linear2_(make_linear_of(Phase::kLinear2)),
      arguments1_(make_arguments(Phase::kLinear1, linear1_, encode)),
      arguments2_(make_arguments(Phase::kLinear2, linear2_, encode)) {}

GpuWeights::Linear Sm100Weights::make_linear_of(Phase phase) const {
  const sm100::WeightLayout of = sm100::layout_of(problem_, phase);
  return make_linear(static_cast<std::uint64_t>(of.code_bytes()),
                     static_cast<std::uint64_t>(of.scale_bytes()),
                     of.rows);
}

const GpuWeights::Linear& Sm100Weights::linear(Phase phase) const {
  return phase == Phase::kLinear1 ? linear1_ : linear2_;
}

sm100::LinearWeights Sm100Weights::make_arguments(Phase phase,
                                                  const Linear& all,
                                                  const Encode& encode) const {
  return {
      .codes =
          sm100::to_argument(encode(sm100::weight_map_request(problem_, phase, all.codes->base()))),
      .scales = all.beside->base(),
      .bias = all.biases == nullptr ? nullptr : reinterpret_cast<const float*>(all.biases->base())};
}

const sm100::LinearWeights& Sm100Weights::arguments(Phase phase) const {
  return phase == Phase::kLinear1 ? arguments1_ : arguments2_;
}

void Sm100Weights::pack_linear(const Source& from, const Packed& to) const {
  const sm100::WeightLayout of = sm100::layout_of(problem_, from.phase);
  pack_in_parts({.count = of.blocks()}, [&](const gpu::PackedRange& blocks) {
    sm100::pack_blocks(of, from.linear, blocks, to.codes, to.beside);
  });
}

}  // namespace megamoe
