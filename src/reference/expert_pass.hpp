#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"
#include "numerics/bfloat16.hpp"
#include "reference/layer_reference.hpp"

namespace megamoe {

// One expert's feed-forward net on a few (token, k) pairs. Holds the scratch memory, so that a
// thread keeps one for all its work.
class ExpertPass {
 public:
  // Enough pairs to pay for decoding a row of weights, few enough for their rows to stay in a
  // cache.
  static constexpr int kMostPairs = 32;

  explicit ExpertPass(const Problem& problem);

  // `pairs` are token * K + k, at most kMostPairs. Writes row `pair - first_pair` of `slots` for
  // each, and row `pair` of `stages` unless null.
  void run(const WeightView& expert,
           const TokenView& tokens,
           std::span<const std::int64_t> pairs,
           std::int64_t first_pair,
           Bfloat16* slots,
           ReferenceStages* stages);

 private:
  void load_tokens(const TokenView& tokens, std::span<const std::int64_t> pairs);
  void multiply(const std::uint8_t* weights,
                const std::uint8_t* scales,
                std::int64_t num_columns,
                std::int64_t depth,
                std::size_t num_pairs);
  void activate(const float* bias, float routing_weight, std::size_t pair_row);
  void keep(std::span<const std::int64_t> pairs, ReferenceStages& stages) const;
  void write_slot(const float* bias,
                  float routing_weight,
                  std::size_t pair_row,
                  Bfloat16* slot) const;

  Problem problem_;
  std::vector<double> operand_;       // [pairs, H or I] dequantised activations
  std::vector<double> accumulators_;  // [pairs, 2I or H]
  std::vector<double> weight_rows_;   // a few dequantised rows of weights
  std::vector<float> activated_;      // [I]
  std::vector<std::uint8_t> codes_;   // [pairs, I]
  std::vector<std::uint8_t> scales_;  // [pairs, I/32]
};

}  // namespace megamoe
