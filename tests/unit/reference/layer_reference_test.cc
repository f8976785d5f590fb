#include "reference/layer_reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "megamoe/error.hpp"
#include "small_layer.hpp"

namespace megamoe {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Problem problem_of(int experts, int topk, int hidden = 32, int intermediate = 32) {
  return {.experts = experts,
          .topk = topk,
          .hidden = hidden,
          .intermediate = intermediate,
          .activation = {}};
}

// gate_i = up_i = x_i in every expert; expert e moves intermediate i to output column i + e + 1.
void make_shifting_experts(SmallLayer& layer) {
  const Problem& problem = layer.problem;
  for (int expert = 0; expert < problem.experts; ++expert) {
    for (int i = 0; i < 32; ++i) {
      layer.set_gate(expert, i, i, 1.0F);
      layer.set_up(expert, i, i, 1.0F);
      layer.set_down(expert, (i + expert + 1) % 32, i, 1.0F);
    }
  }
}

// What is left of an activation that stands alone in its group, after E4M3.
double requantised(double value) {
  float group[kGroupSize] = {static_cast<float>(value)};
  const QuantizedGroup quantized = quantize_group(group);
  return std::ldexp(double{to_float(Float8E4M3{quantized.codes[0]})}, quantized.scale.exponent());
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

void expect_row(const ReferenceOutput& output, int token, const std::vector<double>& wanted) {
  const auto hidden = static_cast<int>(wanted.size());
  for (int column = 0; column < hidden; ++column) {
    const Bfloat16 got = output.y[SmallLayer::extent(token * hidden + column)];
    EXPECT_EQ(to_float(got), wanted[SmallLayer::extent(column)])
        << "token " << token << ", column " << column;
  }
}

bool is_zero_row(const ReferenceOutput& output, int token, int hidden) {
  return std::all_of(output.y.begin() + token * hidden,
                     output.y.begin() + (token + 1) * hidden,
                     [](Bfloat16 cell) { return cell.bits == 0; });
}

// One-hot tokens, weights that differ in every slot: where y is not zero says which token went to
// which expert, and the value says by which slot's weight.
TEST(LayerReference, OutputIdentifiesTokenSlotAndExpert) {
  SmallLayer layer(problem_of(5, 2), 4);
  make_shifting_experts(layer);
  const float weights[4][2] = {{0.5F, 0.25F}, {1.0F, 0.125F}, {3.0F, 2.0F}, {0.75F, 1.5F}};
  const int ids[4][2] = {{0, 3}, {4, 1}, {2, 0}, {1, 4}};
  for (int token = 0; token < 4; ++token) {
    layer.set_token(token, 7 * token, 4.0F);
    for (int k = 0; k < 2; ++k)
      layer.route(token, k, ids[token][k], weights[token][k]);
  }
  const ReferenceOutput output = layer.run();
  for (int token = 0; token < 4; ++token) {
    std::vector<double> wanted(32);
    for (int k = 0; k < 2; ++k) {
      const auto column = SmallLayer::extent((7 * token + ids[token][k] + 1) % 32);
      wanted[column] += requantised(silu(4) * 4 * weights[token][k]);
    }
    expect_row(output, token, wanted);
  }
  EXPECT_EQ(output.tokens_per_expert, (std::vector<std::int64_t>{2, 2, 1, 1, 2}));
}

// The layer once more, as the shortest loops that say it: one product at a time, each scaled by the
// sum of its exponents.
struct Operand {
  const std::vector<std::uint8_t>& codes;
  const std::vector<std::uint8_t>& scales;
  int row;
};

double dot(const Operand& x, const Operand& weights, int depth) {
  double total = 0;
  for (int k = 0; k < depth; ++k) {
    const auto at = SmallLayer::extent(x.row * depth + k);
    const auto weight_at = SmallLayer::extent(weights.row * depth + k);
    const std::uint8_t pair = weights.codes[weight_at / 2];
    const auto nibble = static_cast<std::uint8_t>(k % 2 == 0 ? pair & 15 : pair >> 4);
    const double product =
        double{to_float(Float8E4M3{x.codes[at]})} * double{to_float(Float4E2M1{nibble})};
    total += std::ldexp(product, x.scales[at / 32] + weights.scales[weight_at / 32] - 2 * 127);
  }
  return total;
}

std::vector<float> shortest_slot(const SmallLayer& layer, int token, int k) {
  const Problem& p = layer.problem;
  const auto pair = SmallLayer::extent(token * p.topk + k);
  const auto expert = static_cast<int>(layer.ids[pair]);
  const float weight = layer.routing_weights[pair];
  const auto projected = [&](int row) {
    const Operand x{layer.codes, layer.scales, token};
    const double sum = dot(x, {layer.linear1, layer.linear1_scale, row}, p.hidden);
    const float bias = layer.linear1_bias[SmallLayer::extent(row)];
    return to_float(to_bfloat16(static_cast<float>(sum) + bias));
  };
  std::vector<float> activated;
  for (int i = 0; i < p.intermediate; ++i) {
    const float gate = projected(expert * 2 * p.intermediate + i);
    const float up = projected(expert * 2 * p.intermediate + p.intermediate + i);
    const auto decay = static_cast<float>(std::exp(-double{gate}));
    activated.push_back(gate / (1 + decay) * up * weight);
  }
  std::vector<std::uint8_t> codes(activated.size());
  std::vector<std::uint8_t> scales(activated.size() / 32);
  quantize_row(activated.data(), p.intermediate, codes.data(), scales.data());
  std::vector<float> slot;
  for (int column = 0; column < p.hidden; ++column) {
    const int row = expert * p.hidden + column;
    const double sum =
        dot({codes, scales, 0}, {layer.linear2, layer.linear2_scale, row}, p.intermediate);
    const float bias = layer.linear2_bias[SmallLayer::extent(row)];
    slot.push_back(to_float(to_bfloat16(static_cast<float>(sum) + weight * bias)));
  }
  return slot;
}

std::vector<Bfloat16> shortest_loops(const SmallLayer& layer) {
  const Problem& p = layer.problem;
  std::vector<Bfloat16> y;
  for (int token = 0; token < layer.num_tokens; ++token) {
    std::vector<float> sums(SmallLayer::extent(p.hidden));
    for (int k = 0; k < p.topk; ++k) {
      if (layer.ids[SmallLayer::extent(token * p.topk + k)] < 0) continue;
      const std::vector<float> slot = shortest_slot(layer, token, k);
      for (std::size_t column = 0; column < sums.size(); ++column)
        sums[column] += slot[column];
    }
    std::transform(sums.begin(), sums.end(), std::back_inserter(y), to_bfloat16);
  }
  return y;
}

SmallLayer random_layer(std::uint32_t seed) {
  Problem problem = problem_of(3, 4, 96, 160);
  problem.has_biases = true;
  SmallLayer layer(problem, 41);
  layer.randomize(seed);
  return layer;
}

// Several groups, odd sizes, and more pairs of an expert than one pass takes.
TEST(LayerReference, EqualsTheShortestLoopsOnRandomLayers) {
  for (const std::uint32_t seed : {1U, 2U}) {
    SCOPED_TRACE(seed);
    const SmallLayer layer = random_layer(seed);
    const std::vector<Bfloat16> wanted = shortest_loops(layer);
    const ReferenceOutput output = layer.run();
    ASSERT_EQ(output.y, wanted);
    EXPECT_GT(*std::max_element(output.tokens_per_expert.begin(), output.tokens_per_expert.end()),
              32);
  }
}

TEST(LayerReference, ThreadsAndPortionsDoNotShowInTheResult) {
  const SmallLayer layer = random_layer(3);
  const ReferenceOutput one = layer.run({.num_threads = 1, .keep_stages = true});
  for (const ReferenceOptions& options :
       {ReferenceOptions{.num_threads = 5, .keep_stages = true},
        ReferenceOptions{.num_threads = 2, .keep_stages = true, .slot_bytes = 1},
        ReferenceOptions{.num_threads = 1, .keep_stages = true, .slot_bytes = 7 * 4 * 96 * 2}}) {
    const ReferenceOutput other = layer.run(options);
    EXPECT_EQ(other.y, one.y);
    EXPECT_EQ(other.slot_magnitude, one.slot_magnitude);
    EXPECT_EQ(other.stages.linear1, one.stages.linear1);
    EXPECT_EQ(other.stages.codes, one.stages.codes);
    EXPECT_EQ(other.stages.scales, one.stages.scales);
    EXPECT_EQ(other.stages.slots, one.stages.slots);
  }
}

TEST(LayerReference, StagesAreWhatTheStepsSay) {
  SmallLayer layer(problem_of(2, 2), 1);
  make_shifting_experts(layer);
  layer.set_token(0, 3, 2.0F);
  layer.set_token(0, 4, -1.5F);
  layer.set_gate(1, 3, 4, 6.0F);  // gate 3 of expert 1: 2 - 9
  layer.route(0, 1, 1, 0.5F);
  const ReferenceOutput output = layer.run({.keep_stages = true});
  const ReferenceStages& stages = output.stages;
  ASSERT_EQ(stages.linear1.size(), 2 * 64U);
  EXPECT_EQ(stages.linear1[64 + 3], -7.0);
  EXPECT_EQ(stages.linear1[64 + 32 + 3], 2.0) << "up follows gate";
  EXPECT_EQ(stages.linear1[3], 0.0) << "slot 0 is masked";
  float activated[32] = {};
  activated[3] = static_cast<float>(silu(-7) * 2 * 0.5);
  activated[4] = static_cast<float>(silu(-1.5) * -1.5 * 0.5);
  const QuantizedGroup group = quantize_group(activated);
  EXPECT_EQ(stages.scales[1], group.scale.bits);
  EXPECT_TRUE(std::equal(group.codes.begin(), group.codes.end(), stages.codes.begin() + 32));
  EXPECT_EQ(stages.slots[32 + 5], output.y[5]);
  EXPECT_EQ(output.slot_magnitude[5], std::abs(to_float(output.y[5])));
}

// Each scale alone is far outside what fp32 products of scales can hold; together they are 1.
TEST(LayerReference, ExtremeScalesThatCancelAreExact) {
  SmallLayer layer(problem_of(1, 1), 1);
  make_shifting_experts(layer);
  layer.set_token(0, 0, 4.0F);
  layer.route(0, 0, 0);
  const ReferenceOutput wanted = layer.run();
  for (const bool tokens_are_small : {true, false}) {
    const auto of_tokens = static_cast<std::uint8_t>(tokens_are_small ? 0 : 254);
    const auto of_weights = static_cast<std::uint8_t>(tokens_are_small ? 254 : 0);
    std::fill(layer.scales.begin(), layer.scales.end(), of_tokens);
    std::fill(layer.linear1_scale.begin(), layer.linear1_scale.end(), of_weights);
    EXPECT_EQ(layer.run().y, wanted.y);
  }
}

TEST(LayerReference, MaskedSlotsContributeNothingWhateverTheyHold) {
  SmallLayer clean(problem_of(3, 2), 2);
  make_shifting_experts(clean);
  clean.set_token(0, 2, 4.0F);
  clean.route(0, 1, 2, 0.5F);
  const ReferenceOutput wanted = clean.run();
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{-2}, INT64_MIN}) {
    for (const float weight : {0.0F, 7.0F, kNan, std::numeric_limits<float>::infinity()}) {
      SmallLayer masked = clean;
      masked.route(0, 0, id, weight);
      masked.route(1, 0, id, weight);
      masked.route(1, 1, id, weight);
      masked.scales[1] = Ue8m0::kNan;  // token 1 is NaN, and goes nowhere
      const ReferenceOutput output = masked.run();
      EXPECT_EQ(output.y, wanted.y) << id << ' ' << weight;
      EXPECT_TRUE(is_zero_row(output, 1, 32)) << "no valid slot gives exactly +0";
      EXPECT_EQ(output.tokens_per_expert, (std::vector<std::int64_t>{0, 0, 1}));
    }
  }
}

TEST(LayerReference, MaskedIsNotExpertZero) {
  SmallLayer layer(problem_of(2, 2), 2);
  make_shifting_experts(layer);
  layer.set_token(0, 0, 4.0F);
  layer.set_token(1, 0, 4.0F);
  layer.route(0, 0, 1);
  layer.route(1, 0, 1);
  layer.route(1, 1, 0);
  const ReferenceOutput output = layer.run();
  EXPECT_EQ(to_float(output.y[1]), 0.0F);
  EXPECT_NE(to_float(output.y[32 + 1]), 0.0F);
}

TEST(LayerReference, AnIdBeyondTheLastExpertIsNamed) {
  for (const std::int64_t id : {std::int64_t{5}, std::int64_t{6}, INT64_MAX}) {
    SmallLayer layer(problem_of(5, 3), 4);
    layer.route(2, 1, id);
    try {
      layer.run();
      ADD_FAILURE() << "id " << id << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      const std::string text = error.what();
      for (const std::string& part :
           {std::string("token 2"), std::string("slot 1"), std::to_string(id)})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(LayerReference, DuplicateIdsCountTwice) {
  SmallLayer layer(problem_of(2, 3), 1);
  make_shifting_experts(layer);
  layer.set_token(0, 0, 4.0F);
  for (int k = 0; k < 3; ++k)
    layer.route(0, k, 1, 0.25F);
  const ReferenceOutput output = layer.run();
  const double one = requantised(silu(4) * 4 * 0.25);
  EXPECT_EQ(to_float(output.y[2]), to_float(to_bfloat16(static_cast<float>(3 * one))));
  EXPECT_EQ(output.tokens_per_expert, (std::vector<std::int64_t>{0, 3}));
}

// Zero tokens, so that only biases speak: gate and up before the activation, down times the weight.
TEST(LayerReference, BiasesEnterWhereTheContractSays) {
  Problem problem = problem_of(2, 1);
  problem.has_biases = true;
  SmallLayer layer(problem, 1);
  make_shifting_experts(layer);
  layer.linear1_bias[64 + 3] = 2.0F;        // gate 3 of expert 1
  layer.linear1_bias[64 + 32 + 3] = -1.5F;  // up 3
  layer.linear2_bias[32 + 9] = 10.0F;
  layer.route(0, 0, 1, 0.5F);
  std::vector<double> wanted(32);
  wanted[5] = requantised(silu(2) * -1.5 * 0.5);
  wanted[9] = 5.0;
  expect_row(layer.run(), 0, wanted);
}

// 1 + 2^-7 + 2^-9 is no bf16: the bias must come before the rounding, not after.
TEST(LayerReference, BiasesAreAddedBeforeTheRounding) {
  Problem problem = problem_of(1, 1);
  problem.has_biases = true;
  SmallLayer layer(problem, 1);
  layer.set_up(0, 0, 0, 1.0F);
  layer.set_down(0, 0, 0, 1.0F);
  layer.linear1_bias[0] = 100.0F;              // silu(100) is 100 in fp32
  layer.linear1_bias[32] = 0x1p-8F - 0x1p-9F;  // up: a quarter of bf16's last place at 1
  layer.scales[0] = Ue8m0::kBias - 8;
  layer.codes[0] = to_float8_e4m3(256.0F).bits;  // x: 1
  layer.route(0, 0, 0);
  const ReferenceOutput output = layer.run({.keep_stages = true});
  EXPECT_EQ(output.stages.linear1[32], 1.0) << "the accumulator without its bias";
  EXPECT_EQ(to_float(output.y[0]), requantised(100.0));
  layer.linear1_bias[32] = 0x1p-8F + 0x1p-12F;  // just above half a last place: up is 1 + 2^-7
  EXPECT_EQ(to_float(layer.run().y[0]), requantised(100.0 * (1 + 0x1p-7)));
}

TEST(LayerReference, BiasesThatTheProblemDeniesAreRefused) {
  Problem problem = problem_of(1, 1);
  problem.has_biases = true;
  SmallLayer layer(problem, 1);
  layer.problem.has_biases = false;
  EXPECT_THROW(layer.run(), Error);
  SmallLayer bare(problem_of(1, 1), 1);
  bare.problem.has_biases = true;
  EXPECT_THROW(bare.run(), Error);
}

TEST(LayerReference, SwigluOaiUsesItsAlphaLimitAndOne) {
  for (const float alpha : {1.702F, 1.0F}) {
    for (const float limit : {7.0F, 3.0F}) {
      Problem problem = problem_of(1, 1);
      problem.activation = {.kind = ActivationKind::kSwigluOai, .alpha = alpha, .limit = limit};
      SmallLayer layer(problem, 1);
      layer.set_gate(0, 0, 0, 1.0F);
      layer.set_gate(0, 1, 1, 1.0F);
      layer.set_up(0, 0, 1, 1.0F);
      layer.set_up(0, 1, 0, 1.0F);
      layer.set_token(0, 0, 16.0F);   // gate 0 and up 1: above the limit
      layer.set_token(0, 1, -16.0F);  // gate 1 is not limited from below, up 0 is
      layer.set_down(0, 0, 0, 1.0F);
      layer.set_down(0, 1, 1, 1.0F);
      layer.route(0, 0, 0, 0.5F);
      const auto gated = [&](double gate, double up) {
        return gate / (1 + std::exp(-alpha * gate)) * (up + 1) * 0.5;
      };
      float activated[32] = {static_cast<float>(gated(limit, -limit)),
                             static_cast<float>(gated(-16, limit))};
      const QuantizedGroup group = quantize_group(activated);
      const ReferenceOutput output = layer.run({.keep_stages = true});
      EXPECT_EQ(output.stages.scales[0], group.scale.bits) << alpha << ' ' << limit;
      EXPECT_EQ(output.stages.codes[0], group.codes[0]) << alpha << ' ' << limit;
      EXPECT_EQ(output.stages.codes[1], group.codes[1]) << alpha << ' ' << limit;
    }
  }
}

TEST(LayerReference, ClampBoundsGateFromAboveAndUpFromBothSides) {
  Problem problem = problem_of(1, 1);
  problem.activation.clamp = 2.0F;
  SmallLayer layer(problem, 2);
  make_shifting_experts(layer);
  layer.set_token(0, 0, 16.0F);
  layer.set_token(1, 0, -16.0F);
  layer.route(0, 0, 0);
  layer.route(1, 0, 0);
  const ReferenceOutput output = layer.run();
  EXPECT_EQ(to_float(output.y[1]), requantised(silu(2) * 2));
  EXPECT_EQ(to_float(output.y[32 + 1]),
            to_float(to_bfloat16(static_cast<float>(requantised(silu(-16) * -2)))));
}

// NaN and infinity arrive as the quantiser marks them (scale 255) or as a NaN code; no clamp hides
// them.
TEST(LayerReference, ANanTokenIsNanInItsOwnRowAndNowhereElse) {
  constexpr float kNoClamp = std::numeric_limits<float>::infinity();
  for (const float clamp : {0.0F, 1.0F, 7.0F, 10.0F, kNoClamp}) {
    SmallLayer layer(problem_of(3, 4, 96, 64), 7);
    layer.randomize(5);
    layer.problem.activation.clamp = clamp;
    for (int token = 0; token < 7; ++token)
      layer.route(token, 2, token % 3, 0.5F);
    const std::vector<Bfloat16> clean = layer.run().y;
    for (const bool by_scale : {true, false}) {
      SmallLayer poisoned = layer;
      if (by_scale) poisoned.scales[3 * 3 + 1] = Ue8m0::kNan;
      if (!by_scale) poisoned.codes[3 * 96 + 95] = 0xFF;
      const std::vector<Bfloat16> y = poisoned.run().y;
      for (std::size_t cell = 0; cell < y.size(); ++cell) {
        const Bfloat16 wanted = cell / 96 == 3 ? Bfloat16{0x7FC0} : clean[cell];
        ASSERT_EQ(y[cell], wanted) << "clamp " << clamp << ", cell " << cell;
      }
    }
  }
}

TEST(LayerReference, ANanRoutingWeightOfAValidSlotIsNotHidden) {
  SmallLayer layer(problem_of(1, 1), 1);
  make_shifting_experts(layer);
  layer.set_token(0, 0, 1.0F);
  layer.route(0, 0, 0, kNan);
  for (const Bfloat16 cell : layer.run().y)
    EXPECT_EQ(cell.bits, 0x7FC0);
}

// amax 0 divided by 448, or a reciprocal of a zero scale, would make NaN of these.
TEST(LayerReference, ZeroTokensZeroGatesAndZeroWeightsGiveExactlyZero) {
  SmallLayer layer(problem_of(2, 1), 3);
  make_shifting_experts(layer);
  for (int i = 0; i < 32; ++i)
    layer.set_gate(1, i, i, 0.0F);
  layer.set_token(1, 0, 4.0F);
  layer.set_token(2, 0, 4.0F);
  layer.route(0, 0, 0);        // a token of zeros
  layer.route(1, 0, 1);        // a gate of zeros
  layer.route(2, 0, 0, 0.0F);  // a weight of zero
  const ReferenceOutput output = layer.run();
  for (int token = 0; token < 3; ++token)
    EXPECT_TRUE(is_zero_row(output, token, 32)) << token;
}

TEST(LayerReference, NoTokensGiveNoOutput) {
  const ReferenceOutput output = SmallLayer(problem_of(3, 2), 0).run({.keep_stages = true});
  EXPECT_TRUE(output.y.empty());
  EXPECT_EQ(output.tokens_per_expert, (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(WeightView, ExpertsLieBehindEachOther) {
  Problem problem = problem_of(4, 1, 64, 96);
  problem.has_biases = true;
  const SmallLayer layer(problem, 0);
  const WeightView whole = layer.weights();
  const WeightView second = whole.expert(2, problem);
  EXPECT_EQ(second.linear1 - whole.linear1, 2 * (2 * 96 * 64 / 2));
  EXPECT_EQ(second.linear1_scale - whole.linear1_scale, 2 * (2 * 96 * 64 / 32));
  EXPECT_EQ(second.linear2 - whole.linear2, 2 * (64 * 96 / 2));
  EXPECT_EQ(second.linear2_scale - whole.linear2_scale, 2 * (64 * 96 / 32));
  EXPECT_EQ(second.linear1_bias - whole.linear1_bias, 2 * (2 * 96));
  EXPECT_EQ(second.linear2_bias - whole.linear2_bias, 2 * 64);
  EXPECT_EQ(WeightView{}.expert(0, problem).linear1_bias, nullptr);
  const WeightView end = whole.expert(4, problem);
  EXPECT_EQ(static_cast<std::size_t>(end.linear1 - whole.linear1), layer.linear1.size());
  EXPECT_EQ(static_cast<std::size_t>(end.linear2_scale - whole.linear2_scale),
            layer.linear2_scale.size());
}

}  // namespace
}  // namespace megamoe
