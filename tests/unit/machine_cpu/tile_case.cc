#include "tile_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/float4.hpp"
#include "numerics/float8.hpp"
#include "numerics/quantize.hpp"

namespace megamoe::cpu {
namespace {

std::vector<std::uint8_t> random_bytes(Random& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>(random());
  return bytes;
}

std::vector<std::uint8_t> random_scales(Random& random,
                                        std::size_t count,
                                        const ScaleBytes& scales) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes)
    byte = scales.draw(random);
  return bytes;
}

std::size_t elements(int rows, int columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

double reference_activation(float gate, float up, float weight, const Activation& activation) {
  const bool is_oai = activation.kind == ActivationKind::kSwigluOai;
  const float bound = is_oai ? activation.limit : activation.clamp;
  if (gate > bound) gate = bound;
  if (up > bound) up = bound;
  if (up < -bound) up = -bound;
  const double slope = is_oai ? static_cast<double>(activation.alpha) * gate : gate;
  const double linear = is_oai ? static_cast<double>(up) + 1 : up;
  return gate / (1 + std::exp(-slope)) * linear * weight;
}

float rounded(double value) {
  return to_float(to_bfloat16(static_cast<float>(value)));
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t count)
    : count_(count),
      bytes_(static_cast<std::byte*>(std::aligned_alloc(64, (count + 63) / 64 * 64))) {
  if (bytes_ == nullptr) throw std::bad_alloc();
  std::memset(bytes_.get(), 0xFF, count);
}

ScaleBytes ScaleBytes::between(int least, int largest) {
  ScaleBytes scales;
  for (int byte = least; byte <= largest; ++byte)
    scales.choices.push_back(static_cast<std::uint8_t>(byte));
  return scales;
}

std::uint8_t ScaleBytes::draw(Random& random) const {
  return choices[random() % choices.size()];
}

WeightView Expert::view() const {
  return {.linear1 = linear1.data(),
          .linear1_scale = linear1_scale.data(),
          .linear2 = linear2.data(),
          .linear2_scale = linear2_scale.data(),
          .linear1_bias = linear1_bias.empty() ? nullptr : linear1_bias.data(),
          .linear2_bias = linear2_bias.empty() ? nullptr : linear2_bias.data()};
}

AlignedBytes Expert::packed_linear1() const {
  AlignedBytes packed(packed_bytes(2 * problem.intermediate, problem.hidden));
  pack_linear1(view(), problem, packed.data());
  return packed;
}

AlignedBytes Expert::packed_linear2() const {
  AlignedBytes packed(packed_bytes(problem.hidden, problem.intermediate));
  pack_linear2(view(), problem, packed.data());
  return packed;
}

Expert random_expert(Random& random, int hidden, int intermediate, const ScaleBytes& scales) {
  Expert expert;
  expert.problem.hidden = hidden;
  expert.problem.intermediate = intermediate;
  const std::size_t count = elements(hidden, intermediate);
  expert.linear1 = random_bytes(random, count);
  expert.linear1_scale = random_scales(random, count / 16, scales);
  expert.linear2 = random_bytes(random, count / 2);
  expert.linear2_scale = random_scales(random, count / 32, scales);
  return expert;
}

void add_biases(Random& random, Expert& expert) {
  std::normal_distribution<float> normal;
  expert.linear1_bias.resize(2 * static_cast<std::size_t>(expert.problem.intermediate));
  expert.linear2_bias.resize(static_cast<std::size_t>(expert.problem.hidden));
  for (float& value : expert.linear1_bias)
    value = normal(random);
  for (float& value : expert.linear2_bias)
    value = normal(random);
}

Tokens random_tokens(Random& random, int num_rows, int k, const ScaleBytes& scales) {
  Tokens tokens{.k = k, .num_rows = num_rows, .codes = {}, .scales = {}, .routing_weights = {}};
  tokens.codes = random_bytes(random, elements(num_rows, k));
  for (std::uint8_t& code : tokens.codes)
    if ((code & 0x7F) == 0x7F) code = 0x38;  // no NaN unless a test puts one
  tokens.scales = random_scales(random, elements(num_rows, k) / 32, scales);
  std::uniform_real_distribution<float> uniform(0.05F, 1.0F);
  for (int row = 0; row < num_rows; ++row)
    tokens.routing_weights.push_back(uniform(random));
  return tokens;
}

AlignedBytes pool_of(const TileKernel& kernel, const Tokens& tokens) {
  AlignedBytes pool(static_cast<std::size_t>(tokens.num_rows) * row_bytes(tokens.k));
  for (int row = 0; row < tokens.num_rows; ++row)
    kernel.store_row(tokens.codes_of(row),
                     tokens.scales_of(row),
                     tokens.k,
                     pool.data() + static_cast<std::size_t>(row) * row_bytes(tokens.k));
  return pool;
}

double dot(const std::uint8_t* weight_codes,
           const std::uint8_t* weight_scales,
           const std::uint8_t* token_codes,
           const std::uint8_t* token_scales,
           int k) {
  double sum = 0;
  for (int group = 0; group < k / 32; ++group) {
    double product = 0;
    for (int i = 32 * group; i < 32 * group + 32; ++i) {
      const std::uint8_t pair = weight_codes[i / 2];
      const Float4E2M1 weight = i % 2 == 0 ? even_float4(pair) : odd_float4(pair);
      product += static_cast<double>(to_float(weight)) * to_float(Float8E4M3{token_codes[i]});
    }
    if (weight_scales[group] == 255 || token_scales[group] == 255) return std::nan("");
    sum += std::ldexp(product, weight_scales[group] + token_scales[group] - 254);
  }
  return sum;
}

Tokens reference_linear1(const Expert& expert, const Tokens& tokens) {
  const int width = expert.problem.intermediate;
  const int k = expert.problem.hidden;
  Tokens result{.k = width,
                .num_rows = tokens.num_rows,
                .codes = std::vector<std::uint8_t>(elements(tokens.num_rows, width)),
                .scales = std::vector<std::uint8_t>(elements(tokens.num_rows, width) / 32),
                .routing_weights = tokens.routing_weights};
  const auto value_of = [&](int row, int channel) {
    const auto at = static_cast<std::size_t>(channel);
    const double bias = expert.linear1_bias.empty() ? 0.0 : expert.linear1_bias[at];
    return rounded(bias + dot(&expert.linear1[at * static_cast<std::size_t>(k) / 2],
                              &expert.linear1_scale[at * static_cast<std::size_t>(k) / 32],
                              tokens.codes_of(row),
                              tokens.scales_of(row),
                              k));
  };
  std::vector<float> values(static_cast<std::size_t>(width));
  for (int row = 0; row < tokens.num_rows; ++row) {
    for (int channel = 0; channel < width; ++channel)
      values[static_cast<std::size_t>(channel)] = static_cast<float>(
          reference_activation(value_of(row, channel),
                               value_of(row, width + channel),
                               tokens.routing_weights[static_cast<std::size_t>(row)],
                               expert.problem.activation));
    quantize_row(values.data(), width, result.codes_of(row), result.scales_of(row));
  }
  return result;
}

std::vector<float> reference_linear2(const Expert& expert, const Tokens& intermediate) {
  const int hidden = expert.problem.hidden;
  const auto k = static_cast<std::size_t>(expert.problem.intermediate);
  std::vector<float> output;
  for (int row = 0; row < intermediate.num_rows; ++row) {
    const double weight = intermediate.routing_weights[static_cast<std::size_t>(row)];
    for (int channel = 0; channel < hidden; ++channel) {
      const auto at = static_cast<std::size_t>(channel);
      const double bias = expert.linear2_bias.empty() ? 0.0 : weight * expert.linear2_bias[at];
      output.push_back(rounded(bias + dot(&expert.linear2[at * k / 2],
                                          &expert.linear2_scale[at * k / 32],
                                          intermediate.codes_of(row),
                                          intermediate.scales_of(row),
                                          intermediate.k)));
    }
  }
  return output;
}

AlignedBytes run_linear1(const TileKernel& kernel,
                         const Expert& expert,
                         const Tokens& tokens,
                         const TileShape& shape) {
  const Problem& problem = expert.problem;
  const AlignedBytes packed = expert.packed_linear1();
  const AlignedBytes input = pool_of(kernel, tokens);
  const std::size_t in_stride = row_bytes(problem.hidden);
  const std::size_t out_stride = row_bytes(problem.intermediate);
  AlignedBytes output(static_cast<std::size_t>(tokens.num_rows) * out_stride);
  const auto scratch = std::make_unique<TileScratch>();
  std::memset(static_cast<void*>(scratch.get()), 0xFF, sizeof *scratch);
  const int channels = 2 * problem.intermediate;
  for (int row = 0; row < tokens.num_rows; row += shape.rows) {
    const auto first_row = static_cast<std::size_t>(row);
    for (int channel = 0; channel < channels; channel += shape.linear1_channels)
      kernel.linear1(
          {.weights = {.bytes = packed.data(), .rows = channels, .k = problem.hidden},
           .first_channel = channel,
           .num_channels = std::min(shape.linear1_channels, channels - channel),
           .input = {.data = input.data() + first_row * in_stride, .stride = in_stride},
           .num_rows = std::min(shape.rows, tokens.num_rows - row),
           .routing_weights = tokens.routing_weights.data() + row,
           .bias = expert.view().linear1_bias,
           .activation = problem.activation,
           .output = {.data = output.data() + first_row * out_stride, .stride = out_stride}},
          *scratch);
  }
  return output;
}

std::vector<Bfloat16> run_layer(const TileKernel& kernel,
                                const Expert& expert,
                                const Tokens& tokens,
                                const TileShape& shape) {
  const Problem& problem = expert.problem;
  const AlignedBytes packed = expert.packed_linear2();
  const AlignedBytes input = run_linear1(kernel, expert, tokens, shape);
  const std::size_t stride = row_bytes(problem.intermediate);
  const auto hidden = static_cast<std::size_t>(problem.hidden);
  std::vector<Bfloat16> output(static_cast<std::size_t>(tokens.num_rows) * hidden, {0xFFFF});
  const auto scratch = std::make_unique<TileScratch>();
  std::memset(static_cast<void*>(scratch.get()), 0xFF, sizeof *scratch);
  for (int row = 0; row < tokens.num_rows; row += shape.rows) {
    const auto first_row = static_cast<std::size_t>(row);
    for (int channel = 0; channel < problem.hidden; channel += shape.linear2_channels)
      kernel.linear2(
          {.weights = {.bytes = packed.data(), .rows = problem.hidden, .k = problem.intermediate},
           .first_channel = channel,
           .num_channels = std::min(shape.linear2_channels, problem.hidden - channel),
           .input = {.data = input.data() + first_row * stride, .stride = stride},
           .num_rows = std::min(shape.rows, tokens.num_rows - row),
           .routing_weights = tokens.routing_weights.data() + row,
           .bias = expert.view().linear2_bias,
           .output = output.data() + first_row * hidden + channel,
           .output_stride = hidden},
          *scratch);
  }
  return output;
}

double relative_error(const float* actual, const float* expected, int count) {
  double difference = 0;
  double norm = 0;
  for (int i = 0; i < count; ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  if (norm == 0) return difference == 0 ? 0 : HUGE_VAL;
  return std::sqrt(difference / norm);
}

std::vector<float> widened(const std::vector<Bfloat16>& values) {
  std::vector<float> result;
  for (const Bfloat16 value : values)
    result.push_back(to_float(value));
  return result;
}

}  // namespace megamoe::cpu
