#include "runtime/gpu/sm90_weights.hpp"

#include <algorithm>
#include <thread>

#include "base/check.hpp"
#include "machine/sm90/pack_slabs.hpp"

namespace megamoe {
namespace {

std::uint64_t bytes_of(const std::shared_ptr<Segment>& segment) {
  return segment == nullptr ? 0 : segment->bytes();
}

/// Ranks pack at the same time, and others work here too.
int packing_threads() {
  constexpr int kMost = 16;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, kMost);
}

}  // namespace

sm90::LinearWeights Sm90Weights::Linear::arguments() const {
  return {.codes = codes->base(),
          .bases = reinterpret_cast<const std::int16_t*>(bases->base()),
          .bias = bias == nullptr ? nullptr : reinterpret_cast<const float*>(bias->base())};
}

Sm90Weights::Sm90Weights(const Problem& problem, sm90::Operands operands, DeviceMemory& memory)
    : memory_(memory),
      operands_(operands),
      experts_(problem.experts_per_rank()),
      linear1_(make_linear(problem, Phase::kLinear1)),
      linear2_(make_linear(problem, Phase::kLinear2)) {}

Sm90Weights::Linear Sm90Weights::make_linear(const Problem& problem, Phase phase) const {
  const sm90::WeightLayout layout = sm90::layout_of(problem, operands_, phase);
  const auto experts = static_cast<std::uint64_t>(experts_);
  const auto buffer = [&](std::int64_t bytes_of_expert) {
    return memory_.own_buffer(experts * static_cast<std::uint64_t>(bytes_of_expert));
  };
  return {.layout = layout,
          .codes = buffer(layout.bytes()),
          .bases = buffer(std::int64_t{layout.padded_rows()} * 2),
          .bias = problem.has_biases ? buffer(std::int64_t{layout.rows} * 4) : nullptr};
}

void Sm90Weights::pack(int local_expert, const WeightView& view) {
  pack_linear(linear1_, local_expert, {view.linear1, view.linear1_scale, view.linear1_bias, true});
  pack_linear(linear2_, local_expert, {view.linear2, view.linear2_scale, view.linear2_bias, false});
}

void Sm90Weights::pack_linear(const Linear& to, int local_expert, const Source& from) {
  const sm90::WeightLayout& layout = to.layout;
  const gpu::CanonicalLinear linear{from.codes, from.scales, from.is_gate_up};
  require(operands_ == sm90::Operands::kBfloat16 || sm90::fits_float8(layout, linear),
          ErrorCode::kInvalidArgument,
          "the exponents in linear ",
          from.is_gate_up ? 1 : 2,
          " of local expert ",
          local_expert,
          " span more binades than numerics fast holds; numerics exact holds all");
  packed_.resize(static_cast<std::size_t>(layout.bytes()));
  bases_.resize(static_cast<std::size_t>(layout.padded_rows()));
  // Slabs lie apart, so threads may pack them side by side.
  const int threads = std::min(packing_threads(), layout.slabs());
  std::vector<std::jthread> packers;
  for (int i = 0; i < threads; ++i) {
    const int first = layout.slabs() * i / threads;
    const int end = layout.slabs() * (i + 1) / threads;
    packers.emplace_back([&, first, end] {
      sm90::pack_slabs(layout, linear, {.first = first, .count = end - first}, packed_, bases_);
    });
  }
  packers.clear();
  const auto expert = static_cast<std::uint64_t>(local_expert);
  const auto upload =
      [&](const std::shared_ptr<Segment>& all, const void* one, std::uint64_t bytes) {
        memory_.write(all->base() + expert * bytes, one, bytes);
      };
  upload(to.codes, packed_.data(), packed_.size());
  upload(to.bases, bases_.data(), bases_.size() * sizeof bases_[0]);
  if (to.bias != nullptr)
    upload(to.bias, from.bias, static_cast<std::uint64_t>(layout.rows) * sizeof(float));
}

std::uint64_t Sm90Weights::bytes() const {
  std::uint64_t sum = 0;
  for (const Linear* linear : {&linear1_, &linear2_})
    sum += bytes_of(linear->codes) + bytes_of(linear->bases) + bytes_of(linear->bias);
  return sum;
}

}  // namespace megamoe
