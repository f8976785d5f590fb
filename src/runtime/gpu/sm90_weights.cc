#include "runtime/gpu/sm90_weights.hpp"

#include "base/check.hpp"
#include "machine/sm90/pack_slabs.hpp"
#include "runtime/gpu/packing_threads.hpp"

namespace megamoe {

Sm90Weights::Sm90Weights(const Problem& problem, sm90::Operands operands, DeviceMemory& memory)
    : GpuWeights(problem, memory),
      problem_(problem),
      operands_(operands),
      linear1_(make_linear_of(Phase::kLinear1)),
      linear2_(make_linear_of(Phase::kLinear2)) {}

sm90::WeightLayout Sm90Weights::layout(Phase phase) const {
  return sm90::layout_of(problem_, operands_, phase);
}

GpuWeights::Linear Sm90Weights::make_linear_of(Phase phase) const {
  const sm90::WeightLayout of = layout(phase);
  return make_linear(static_cast<std::uint64_t>(of.bytes()),
                     static_cast<std::uint64_t>(of.padded_rows()) * sizeof(std::int16_t),
                     of.rows);
}

const GpuWeights::Linear& Sm90Weights::linear(Phase phase) const {
  return phase == Phase::kLinear1 ? linear1_ : linear2_;
}

sm90::LinearWeights Sm90Weights::arguments(Phase phase) const {
  const Linear& all = linear(phase);
  return {
      .codes = all.codes->base(),
      .bases = reinterpret_cast<const std::int16_t*>(all.beside->base()),
      .bias = all.biases == nullptr ? nullptr : reinterpret_cast<const float*>(all.biases->base())};
}

void Sm90Weights::pack_linear(const Source& from, const Packed& to) const {
  const sm90::WeightLayout of = layout(from.phase);
  require(operands_ == sm90::Operands::kBfloat16 || sm90::fits_float8(of, from.linear),
          ErrorCode::kInvalidArgument,
          "the exponents in linear ",
          from.phase == Phase::kLinear1 ? 1 : 2,
          " of local expert ",
          from.local_expert,
          " span more binades than numerics fast holds; numerics exact holds all");
  const std::span bases(reinterpret_cast<std::int16_t*>(to.beside.data()),
                        to.beside.size() / sizeof(std::int16_t));
  pack_in_parts({.count = of.slabs()}, [&](const gpu::PackedRange& slabs) {
    sm90::pack_slabs(of, from.linear, slabs, to.codes, bases);
  });
}

}  // namespace megamoe
