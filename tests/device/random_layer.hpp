#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "machine/sm90/pack.hpp"
#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"
#include "numerics/float4.hpp"
#include "numerics/quantize.hpp"
#include "parallel.hpp"

namespace megamoe::test {

// Canonical weights of all experts, random, and their values for the reference.
struct RandomWeights {
  std::vector<std::uint8_t> linear1, linear1_scale, linear2, linear2_scale;
  std::vector<float> linear1_bias, linear2_bias;

  WeightView view() const {
    return {linear1.data(),
            linear1_scale.data(),
            linear2.data(),
            linear2_scale.data(),
            linear1_bias.empty() ? nullptr : linear1_bias.data(),
            linear2_bias.empty() ? nullptr : linear2_bias.data()};
  }
};

// `spread`: exponents of a row's groups differ by up to this.
inline void fill_weights(std::vector<std::uint8_t>& codes,
                         std::vector<std::uint8_t>& scales,
                         std::size_t count,
                         int spread,
                         std::uint64_t seed) {
  codes.resize(count / 2);
  scales.resize(count / 32);
  constexpr int kParts = 64;
  parallel_for(kParts, [&](int part) {
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(part));
    const auto from = [&](std::size_t n) { return n * static_cast<std::size_t>(part) / kParts; };
    const auto to = [&](std::size_t n) { return n * static_cast<std::size_t>(part + 1) / kParts; };
    for (std::size_t i = from(codes.size()); i < to(codes.size()); ++i)
      codes[i] = static_cast<std::uint8_t>(random() >> 13);
    for (std::size_t i = from(scales.size()); i < to(scales.size()); ++i)
      scales[i] = static_cast<std::uint8_t>(
          120 - static_cast<int>(random() % static_cast<std::uint64_t>(spread + 1)));
  });
}

inline RandomWeights random_weights(const Problem& problem, int spread, std::uint64_t seed) {
  RandomWeights weights;
  const std::size_t count = static_cast<std::size_t>(problem.experts) *
                            static_cast<std::size_t>(problem.hidden) *
                            static_cast<std::size_t>(problem.intermediate);
  fill_weights(weights.linear1, weights.linear1_scale, 2 * count, spread, seed);
  fill_weights(weights.linear2, weights.linear2_scale, count, spread, seed + 1000);
  if (!problem.has_biases) return weights;
  std::mt19937_64 random(seed + 2000);
  std::normal_distribution<float> normal(0.0F, 0.5F);
  weights.linear1_bias.resize(static_cast<std::size_t>(problem.experts * 2 * problem.intermediate));
  weights.linear2_bias.resize(static_cast<std::size_t>(problem.experts * problem.hidden));
  for (float& value : weights.linear1_bias)
    value = normal(random);
  for (float& value : weights.linear2_bias)
    value = normal(random);
  return weights;
}

// One rank's tokens, quantised, and their routing.
struct RandomInput {
  int tokens = 0;
  std::vector<std::uint8_t> codes, scales;
  std::vector<std::int64_t> ids;
  std::vector<float> weights;
};

// Rows have outliers of 2^12 in places, zero groups in others; one id in sixteen is masked.
inline RandomInput random_input(const Problem& problem, int tokens, std::uint64_t seed) {
  RandomInput input;
  input.tokens = tokens;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  const auto hidden = static_cast<std::size_t>(problem.hidden);
  input.codes.resize(static_cast<std::size_t>(tokens) * hidden);
  input.scales.resize(input.codes.size() / 32);
  std::vector<float> row(hidden);
  for (int t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < hidden; ++i)
      row[i] = i / 32 % 7 == 3 && t % 3 == 1 ? 0.0F : normal(random);
    if (t % 4 == 2) row[random() % hidden] *= 4096.0F;
    const std::size_t at = static_cast<std::size_t>(t) * hidden;
    quantize_row(
        row.data(), problem.hidden, input.codes.data() + at, input.scales.data() + at / 32);
    std::vector<std::int64_t> experts(static_cast<std::size_t>(problem.experts));
    for (std::size_t e = 0; e < experts.size(); ++e)
      experts[e] = static_cast<std::int64_t>(e);
    std::shuffle(experts.begin(), experts.end(), random);
    for (int k = 0; k < problem.topk; ++k) {
      const bool is_masked = random() % 16 == 0;
      input.ids.push_back(is_masked ? -1 : experts[static_cast<std::size_t>(k) % experts.size()]);
      input.weights.push_back(static_cast<float>(random() % 1000) / 1000.0F);
    }
  }
  return input;
}

// Tokens `first` to `first + count` of an input.
inline RandomInput part_of(const RandomInput& all, const Problem& problem, int first, int count) {
  const auto cut = [&](const auto& from, std::size_t width) {
    const auto begin =
        from.begin() + static_cast<std::ptrdiff_t>(first) * static_cast<std::ptrdiff_t>(width);
    return std::decay_t<decltype(from)>(
        begin, begin + static_cast<std::ptrdiff_t>(count) * static_cast<std::ptrdiff_t>(width));
  };
  const auto hidden = static_cast<std::size_t>(problem.hidden);
  const auto topk = static_cast<std::size_t>(problem.topk);
  return {count,
          cut(all.codes, hidden),
          cut(all.scales, hidden / 32),
          cut(all.ids, topk),
          cut(all.weights, topk)};
}

}  // namespace megamoe::test
