#include "reference/expert_pass.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "numerics/float4.hpp"
#include "numerics/float8.hpp"
#include "numerics/quantize.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe {
namespace {

// Rows of weights that are multiplied side by side: they share the loads of the activations.
constexpr int kRowsAtOnce = 4;
constexpr int kLanes = 4;

std::size_t extent(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// Scales are applied to the operands, not to the sums: in fp64 that is exact, as the least product
// of two scaled codes is 2^(-127 - 127 - 10) and the largest below 2^(127 + 127 + 12).
double scale_of(std::uint8_t byte) {
  const Ue8m0 scale{byte};
  return is_nan(scale) ? std::nan("") : std::ldexp(1.0, scale.exponent());
}

void decode_float8(const std::uint8_t* codes,
                   const std::uint8_t* scales,
                   std::int64_t count,
                   double* values) {
  static const auto value_of = [] {
    std::array<double, 256> table{};
    for (std::size_t code = 0; code < table.size(); ++code)
      table[code] = to_float(Float8E4M3{static_cast<std::uint8_t>(code)});
    return table;
  }();
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = value_of[codes[i]] * scale_of(scales[i / kGroupSize]);
}

void decode_float4(const std::uint8_t* packed,
                   const std::uint8_t* scales,
                   std::int64_t count,
                   double* values) {
  static const auto pair_of = [] {
    std::array<std::array<double, 2>, 256> table{};
    for (std::size_t pair = 0; pair < table.size(); ++pair) {
      const auto byte = static_cast<std::uint8_t>(pair);
      table[pair] = {to_float(even_float4(byte)), to_float(odd_float4(byte))};
    }
    return table;
  }();
  for (std::int64_t first = 0; first < count; first += kGroupSize) {
    const double scale = scale_of(scales[first / kGroupSize]);
    for (std::int64_t i = first; i < first + kGroupSize; i += 2) {
      const std::array<double, 2>& pair = pair_of[packed[i / 2]];
      values[i] = pair[0] * scale;
      values[i + 1] = pair[1] * scale;
    }
  }
}

// Dot products of kRowsAtOnce consecutive rows of `weights` with one row of activations. Several
// partial sums a row, as one would make each addition wait for the last.
std::array<double, kRowsAtOnce> dot_products(const double* weights,
                                             const double* activations,
                                             std::int64_t depth) {
  double sums[kRowsAtOnce][kLanes] = {};
  for (std::int64_t k = 0; k < depth; k += kLanes)
    for (int row = 0; row < kRowsAtOnce; ++row)
      for (int lane = 0; lane < kLanes; ++lane)
        sums[row][lane] += weights[row * depth + k + lane] * activations[k + lane];
  std::array<double, kRowsAtOnce> totals{};
  for (unsigned row = 0; row < kRowsAtOnce; ++row)
    for (const double sum : sums[row])
      totals[row] += sum;
  return totals;
}

// fp32 step by step, as the contract words it, so that overflow, underflow and NaN come where they
// come on a machine; the exponential is the C library's in fp64, rounded once.
float activated(float gate, float up, float routing_weight, const Activation& activation) {
  if (activation.kind == ActivationKind::kSwigluOai) {
    if (gate > activation.limit) gate = activation.limit;
    if (up > activation.limit) up = activation.limit;
    if (up < -activation.limit) up = -activation.limit;
    const float argument = activation.alpha * gate;
    const auto decay = static_cast<float>(std::exp(-static_cast<double>(argument)));
    return gate / (1.0F + decay) * (up + 1.0F) * routing_weight;
  }
  if (gate > activation.clamp) gate = activation.clamp;
  if (up > activation.clamp) up = activation.clamp;
  if (up < -activation.clamp) up = -activation.clamp;
  const auto decay = static_cast<float>(std::exp(-static_cast<double>(gate)));
  return gate / (1.0F + decay) * up * routing_weight;
}

}  // namespace

ExpertPass::ExpertPass(const Problem& problem)
    : problem_(problem),
      operand_(extent(kMostPairs) * extent(std::max(problem.hidden, problem.intermediate))),
      accumulators_(extent(kMostPairs) *
                    extent(std::max(problem.hidden, 2 * problem.intermediate))),
      weight_rows_(extent(kRowsAtOnce) * extent(std::max(problem.hidden, problem.intermediate))),
      activated_(extent(problem.intermediate)),
      codes_(extent(kMostPairs) * extent(problem.intermediate)),
      scales_(codes_.size() / kGroupSize) {}

void ExpertPass::load_tokens(const TokenView& tokens, std::span<const std::int64_t> pairs) {
  const std::int64_t hidden = problem_.hidden;
  double* row = operand_.data();
  for (const std::int64_t pair : pairs) {
    const std::int64_t token = pair / problem_.topk;
    decode_float8(
        tokens.codes + token * hidden, tokens.scales + token * (hidden / kGroupSize), hidden, row);
    row += hidden;
  }
}

// accumulators[pair, column] = sum over k of operand[pair, k] * weights[column, k]
void ExpertPass::multiply(const std::uint8_t* weights,
                          const std::uint8_t* scales,
                          std::int64_t num_columns,
                          std::int64_t depth,
                          std::size_t num_pairs) {
  for (std::int64_t column = 0; column < num_columns; column += kRowsAtOnce) {
    for (std::int64_t row = column; row < column + kRowsAtOnce; ++row)
      decode_float4(weights + row * (depth / 2),
                    scales + row * (depth / kGroupSize),
                    depth,
                    weight_rows_.data() + (row - column) * depth);
    for (std::size_t pair = 0; pair < num_pairs; ++pair) {
      const double* activations = operand_.data() + pair * extent(depth);
      const auto sums = dot_products(weight_rows_.data(), activations, depth);
      std::copy(
          sums.begin(), sums.end(), accumulators_.data() + pair * extent(num_columns) + column);
    }
  }
}

void ExpertPass::activate(const float* bias, float routing_weight, std::size_t pair_row) {
  const std::int64_t intermediate = problem_.intermediate;
  const double* sums = accumulators_.data() + pair_row * extent(2 * intermediate);
  const auto rounded = [&](std::int64_t column) {
    auto sum = static_cast<float>(sums[column]);
    if (bias != nullptr) sum += bias[column];
    return to_float(to_bfloat16(sum));
  };
  for (std::int64_t i = 0; i < intermediate; ++i)
    activated_[extent(i)] =
        activated(rounded(i), rounded(intermediate + i), routing_weight, problem_.activation);
  quantize_row(activated_.data(),
               intermediate,
               codes_.data() + pair_row * extent(intermediate),
               scales_.data() + pair_row * extent(intermediate / kGroupSize));
}

void ExpertPass::keep(std::span<const std::int64_t> pairs, ReferenceStages& stages) const {
  const std::int64_t intermediate = problem_.intermediate;
  const std::int64_t groups = intermediate / kGroupSize;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    std::copy_n(accumulators_.data() + row * 2 * intermediate,
                2 * intermediate,
                stages.linear1.data() + pairs[i] * 2 * intermediate);
    std::copy_n(codes_.data() + row * intermediate,
                intermediate,
                stages.codes.data() + pairs[i] * intermediate);
    std::copy_n(scales_.data() + row * groups, groups, stages.scales.data() + pairs[i] * groups);
  }
}

void ExpertPass::write_slot(const float* bias,
                            float routing_weight,
                            std::size_t pair_row,
                            Bfloat16* slot) const {
  const std::int64_t hidden = problem_.hidden;
  const double* sums = accumulators_.data() + pair_row * extent(hidden);
  for (std::int64_t column = 0; column < hidden; ++column) {
    auto sum = static_cast<float>(sums[column]);
    // The routing weight went in before linear 2; the bias comes after it and needs it too.
    if (bias != nullptr) sum += routing_weight * bias[column];
    slot[column] = to_bfloat16(sum);
  }
}

void ExpertPass::run(const WeightView& expert,
                     const TokenView& tokens,
                     std::span<const std::int64_t> pairs,
                     std::int64_t first_pair,
                     Bfloat16* slots,
                     ReferenceStages* stages) {
  const std::int64_t hidden = problem_.hidden;
  const std::int64_t intermediate = problem_.intermediate;
  const auto num_pairs = static_cast<std::int64_t>(pairs.size());

  load_tokens(tokens, pairs);
  multiply(expert.linear1, expert.linear1_scale, 2 * intermediate, hidden, pairs.size());
  for (std::size_t row = 0; row < pairs.size(); ++row)
    activate(expert.linear1_bias, tokens.routing_weights[pairs[row]], row);
  if (stages != nullptr) keep(pairs, *stages);

  decode_float8(codes_.data(), scales_.data(), num_pairs * intermediate, operand_.data());
  multiply(expert.linear2, expert.linear2_scale, hidden, intermediate, pairs.size());
  for (std::size_t row = 0; row < pairs.size(); ++row) {
    const std::int64_t pair = pairs[row];
    Bfloat16* slot = slots + (pair - first_pair) * hidden;
    write_slot(expert.linear2_bias, tokens.routing_weights[pair], row, slot);
  }
}

}  // namespace megamoe
