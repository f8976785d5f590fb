#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "numerics/float4.hpp"
#include "numerics/quantize.hpp"
#include "reference/layer_reference.hpp"

namespace megamoe {

// A layer and its tokens that a test fills element by element. Weights and tokens start as zeros
// with scale 1, every slot masked, routing weights 1.
struct SmallLayer {
  SmallLayer(const Problem& problem_of_layer, int tokens_of_layer)
      : problem(problem_of_layer), num_tokens(tokens_of_layer) {
    const auto hidden = extent(problem.hidden);
    const auto elements = extent(problem.experts) * hidden * extent(problem.intermediate);
    linear1.assign(elements, 0);
    linear1_scale.assign(elements / 16, Ue8m0::kBias);
    linear2.assign(elements / 2, 0);
    linear2_scale.assign(elements / 32, Ue8m0::kBias);
    codes.assign(extent(num_tokens) * hidden, 0);
    scales.assign(codes.size() / kGroupSize, Ue8m0::kBias);
    ids.assign(extent(num_tokens) * extent(problem.topk), -1);
    routing_weights.assign(ids.size(), 1.0F);
    if (problem.has_biases) {
      linear1_bias.assign(extent(problem.experts) * 2 * extent(problem.intermediate), 0.0F);
      linear2_bias.assign(extent(problem.experts) * hidden, 0.0F);
    }
  }

  void set_gate(int expert, int row, int k, float value) { set_linear1(expert, row, k, value); }
  void set_up(int expert, int row, int k, float value) {
    set_linear1(expert, problem.intermediate + row, k, value);
  }
  void set_down(int expert, int row, int k, float value) {
    set_nibble(linear2, (expert * problem.hidden + row) * problem.intermediate + k, value);
  }
  // Exact where the value is a code of E4M3 times the scale already there.
  void set_token(int token, int column, float value) {
    const auto at = extent(token * problem.hidden + column);
    const float scale = to_float(Ue8m0{scales[at / kGroupSize]});
    codes[at] = to_float8_e4m3(value / scale).bits;
  }
  void route(int token, int k, std::int64_t id, float routing_weight = 1.0F) {
    ids[extent(token * problem.topk + k)] = id;
    routing_weights[extent(token * problem.topk + k)] = routing_weight;
  }

  // Everything random, with finite values of a common size; ids from -1 up.
  void randomize(std::uint32_t seed) {
    std::mt19937 random(seed);
    for (auto* bytes : {&linear1, &linear2})
      for (std::uint8_t& byte : *bytes)
        byte = static_cast<std::uint8_t>(random());
    for (auto* bytes : {&linear1_scale, &linear2_scale})
      for (std::uint8_t& byte : *bytes)
        byte = static_cast<std::uint8_t>(122 + random() % 5);
    for (std::uint8_t& code : codes)
      code = static_cast<std::uint8_t>(random() & 0xBF);
    for (std::uint8_t& scale : scales)
      scale = static_cast<std::uint8_t>(124 + random() % 5);
    for (std::int64_t& id : ids)
      id = static_cast<std::int64_t>(random() % extent(problem.experts + 1)) - 1;
    for (auto* values : {&routing_weights, &linear1_bias, &linear2_bias})
      for (float& value : *values)
        value = static_cast<float>(random() % 1000) / 1000.0F;
  }

  WeightView weights() const {
    return {.linear1 = linear1.data(),
            .linear1_scale = linear1_scale.data(),
            .linear2 = linear2.data(),
            .linear2_scale = linear2_scale.data(),
            .linear1_bias = linear1_bias.empty() ? nullptr : linear1_bias.data(),
            .linear2_bias = linear2_bias.empty() ? nullptr : linear2_bias.data()};
  }
  TokenView tokens() const {
    return {.num_tokens = num_tokens,
            .codes = codes.data(),
            .scales = scales.data(),
            .ids = ids.data(),
            .routing_weights = routing_weights.data()};
  }
  ReferenceOutput run(const ReferenceOptions& options = {}) const {
    return reference_forward(problem, weights(), tokens(), options);
  }

  static std::size_t extent(std::int64_t count) { return static_cast<std::size_t>(count); }

  Problem problem;
  int num_tokens;
  std::vector<std::uint8_t> linear1, linear1_scale, linear2, linear2_scale;
  std::vector<float> linear1_bias, linear2_bias;
  std::vector<std::uint8_t> codes, scales;
  std::vector<std::int64_t> ids;
  std::vector<float> routing_weights;

 private:
  void set_linear1(int expert, int row, int k, float value) {
    set_nibble(linear1, (expert * 2 * problem.intermediate + row) * problem.hidden + k, value);
  }
  static void set_nibble(std::vector<std::uint8_t>& packed, int element, float value) {
    std::uint8_t& pair = packed[extent(element / 2)];
    const Float4E2M1 code = to_float4_e2m1(value);
    pair = element % 2 == 0 ? pack_float4(code, odd_float4(pair))
                            : pack_float4(even_float4(pair), code);
  }
};

}  // namespace megamoe
