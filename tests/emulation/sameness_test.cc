// One layer's tokens on one rank and on several, in every tile size and with other numbers of SMs:
// a token's output is the same bits always, and agrees with fp64.
#include <cmath>
#include <limits>

#include "emulated_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

constexpr int kRanks = 4;
constexpr int kTokensOfRank = 10;
constexpr int kNanToken = 7;
constexpr int kInfinityToken = 23;

class EmulatedSameness : public GpuTest {
 protected:
  static Problem problem(int ranks) {
    return {.ranks = ranks,
            .experts = 8,
            .topk = 3,
            .hidden = 416,
            .intermediate = 224,
            .capacity = ranks == 1 ? kRanks * kTokensOfRank : kTokensOfRank};
  }

  // One token has a NaN code, one a NaN scale: their rows are NaN, no other is.
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    weights_ = random_weights(problem(1), 5, 31);
    all_ = random_input(problem(1), kRanks * kTokensOfRank, 32);
    const auto hidden = static_cast<std::size_t>(problem(1).hidden);
    all_.codes[kNanToken * hidden + 33] = Float8E4M3::kNan;
    all_.scales[kInfinityToken * hidden / 32 + 2] = 255;
    for (const int token : {kNanToken, kInfinityToken})
      all_.ids[static_cast<std::size_t>(token * problem(1).topk)] = 1;
  }

  static std::vector<Bfloat16> run(const EmulatedLayer::Options& options,
                                   const Problem& problem,
                                   const RandomWeights& weights,
                                   const std::vector<RandomInput>& inputs) {
    EmulatedLayer layer(problem, weights, options);
    for (int r = 0; r < problem.ranks; ++r)
      layer.set_input(r, inputs[static_cast<std::size_t>(r)]);
    layer.poison();
    layer.forward();
    std::vector<Bfloat16> all;
    for (int r = 0; r < problem.ranks; ++r) {
      const std::vector<Bfloat16> one = layer.output(r);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  // The tokens of a rank when they are dealt in order.
  RandomInput part(int rank) const {
    const auto slice = [&](const auto& values) {
      const std::size_t count = values.size() / kRanks;
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(count * std::size_t(rank));
      return std::vector(first, first + static_cast<std::ptrdiff_t>(count));
    };
    return {.tokens = kTokensOfRank,
            .codes = slice(all_.codes),
            .scales = slice(all_.scales),
            .ids = slice(all_.ids),
            .weights = slice(all_.weights)};
  }

  RandomWeights weights_;
  RandomInput all_;
};

TEST_F(EmulatedSameness, WhateverTilesWorkersAndRanks) {
  const std::vector<Bfloat16> standard =
      run({.block_m = 16, .workers = 8}, problem(1), weights_, {all_});
  const auto hidden = static_cast<std::size_t>(problem(1).hidden);
  for (std::size_t at = 0; at < standard.size(); ++at) {
    const auto token = static_cast<int>(at / hidden);
    ASSERT_EQ(std::isnan(to_float(standard[at])), token == kNanToken || token == kInfinityToken)
        << "token " << token << ", channel " << at % hidden;
  }
  const ReferenceOutput reference = reference_forward(problem(1), weights_.view(), view_of(all_));
  const Comparison comparison = compare(standard, reference, problem(1).hidden, kExactTolerance);
  EXPECT_TRUE(comparison.agrees()) << comparison.explain();
  for (const int block_m : {32, 64, 96, 128, 192}) {
    SCOPED_TRACE(block_m);
    const int workers = block_m == 64 ? 2 : block_m == 128 ? 26 : 12;
    EXPECT_TRUE(same_bits(
        standard, run({.block_m = block_m, .workers = workers}, problem(1), weights_, {all_})));
  }
  const std::vector<RandomInput> parts = {part(0), part(1), part(2), part(3)};
  EXPECT_TRUE(
      same_bits(standard, run({.block_m = 32, .workers = 6}, problem(kRanks), weights_, parts)));
}

}  // namespace
}  // namespace megamoe::test
