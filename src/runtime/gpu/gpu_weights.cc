#include "runtime/gpu/gpu_weights.hpp"

namespace megamoe {
namespace {

std::uint64_t bytes_of(const std::shared_ptr<Segment>& segment) {
  return segment == nullptr ? 0 : segment->bytes();
}

}  // namespace

GpuWeights::GpuWeights(const Problem& problem, DeviceMemory& memory)
    : memory_(memory),
      experts_(static_cast<std::uint64_t>(problem.experts_per_rank())),
      has_biases_(problem.has_biases) {}

GpuWeights::Linear GpuWeights::make_linear(std::uint64_t code_bytes,
                                           std::uint64_t beside_bytes,
                                           int rows) const {
  const Sizes sizes{.codes = code_bytes,
                    .beside = beside_bytes,
                    .biases = static_cast<std::uint64_t>(rows) * sizeof(float)};
  return {.of_expert = sizes,
          .codes = memory_.own_buffer(experts_ * sizes.codes),
          .beside = memory_.own_buffer(experts_ * sizes.beside),
          .biases = has_biases_ ? memory_.own_buffer(experts_ * sizes.biases) : nullptr};
}

void GpuWeights::pack(int local_expert, const WeightView& view) {
  pack_one({Phase::kLinear1, local_expert, {view.linear1, view.linear1_scale, true}},
           view.linear1_bias);
  pack_one({Phase::kLinear2, local_expert, {view.linear2, view.linear2_scale, false}},
           view.linear2_bias);
}

void GpuWeights::pack_one(const Source& from, const float* biases) {
  const Linear& to = linear(from.phase);
  codes_.resize(to.of_expert.codes);
  beside_.resize(to.of_expert.beside);
  pack_linear(from, {codes_, beside_});
  const auto expert = static_cast<std::uint64_t>(from.local_expert);
  const auto upload = [&](Segment& all, const void* one, std::uint64_t bytes) {
    memory_.write(all.base() + expert * bytes, one, bytes);
  };
  upload(*to.codes, codes_.data(), to.of_expert.codes);
  upload(*to.beside, beside_.data(), to.of_expert.beside);
  if (to.biases != nullptr) upload(*to.biases, biases, to.of_expert.biases);
}

std::uint64_t GpuWeights::bytes() const {
  std::uint64_t sum = 0;
  for (const Phase phase : {Phase::kLinear1, Phase::kLinear2}) {
    const Linear& all = linear(phase);
    sum += bytes_of(all.codes) + bytes_of(all.beside) + bytes_of(all.biases);
  }
  return sum;
}

}  // namespace megamoe
