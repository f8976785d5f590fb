// Scales from one end of UE8M0 to the other, NaN, zeros, outliers: for every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "machine/cpu/tile/tile_functions.hpp"
#include "numerics/quantize.hpp"
#include "sets.hpp"
#include "tile_case.hpp"

namespace megamoe::cpu {
namespace {

class TileExactnessTest : public SetTest {
 protected:
  // Linear 2 alone, on rows that a test made.
  std::vector<float> linear2(const Expert& expert, const Tokens& tokens) const {
    const Problem& problem = expert.problem;
    const AlignedBytes packed = expert.packed_linear2();
    const AlignedBytes pool = pool_of(kernel_, tokens);
    const auto hidden = static_cast<std::size_t>(problem.hidden);
    std::vector<Bfloat16> output(static_cast<std::size_t>(tokens.num_rows) * hidden, {0xFFFF});
    const auto scratch = std::make_unique<TileScratch>();
    kernel_.linear2({.weights = {packed.data(), problem.hidden, problem.intermediate},
                     .first_channel = 0,
                     .num_channels = problem.hidden,
                     .input = {pool.data(), row_bytes(problem.intermediate)},
                     .num_rows = tokens.num_rows,
                     .routing_weights = tokens.routing_weights.data(),
                     .bias = expert.view().linear2_bias,
                     .output = output.data(),
                     .output_stride = hidden},
                    *scratch);
    return widened(output);
  }

  void expect_linear2_close(const Expert& expert, const Tokens& tokens) const {
    const std::vector<float> actual = linear2(expert, tokens);
    const std::vector<float> expected = reference_linear2(expert, tokens);
    for (int row = 0; row < tokens.num_rows; ++row) {
      const auto at = static_cast<std::size_t>(row * expert.problem.hidden);
      EXPECT_LT(relative_error(&actual[at], &expected[at], expert.problem.hidden), 0.002)
          << "row " << row;
    }
  }
};

// Every group of the weights at one end and the tokens' at the other: exponents must be added
// before either scale becomes a float.
TEST_P(TileExactnessTest, OppositeExtremesOfScalesMeet) {
  const std::uint8_t ends[] = {0, 1, 2, 60, 126, 127, 128, 200, 252, 253, 254};
  for (unsigned seed = 11; seed < 15; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Expert expert = random_expert(random, 96, 256, ScaleBytes::between(127, 127));
    Tokens tokens = random_tokens(random, 5, 256, ScaleBytes::between(127, 127));
    for (int group = 0; group < 8; ++group) {
      const std::uint8_t byte = ends[random() % std::size(ends)];
      for (int row = 0; row < 96; ++row)
        expert.linear2_scale[static_cast<std::size_t>(row * 8 + group)] = byte;
      for (int row = 0; row < tokens.num_rows; ++row)
        tokens.scales_of(row)[group] = static_cast<std::uint8_t>(254 - byte);
    }
    expect_linear2_close(expert, tokens);
  }
}

TEST_P(TileExactnessTest, OneEndOfTheScalesAlone) {
  for (const int byte : {0, 1, 30, 62, 63, 64, 143, 144, 145, 220}) {
    for (const bool is_token : {false, true}) {
      SCOPED_TRACE(testing::Message() << "seed 16, byte " << byte << ", token " << is_token);
      Random random(16);
      const int other = std::min(254 - byte, 254);
      const ScaleBytes end = ScaleBytes::between(byte, byte);
      const ScaleBytes opposite = ScaleBytes::between(std::max(other - 2, 0), other);
      const Expert expert = random_expert(random, 64, 96, is_token ? opposite : end);
      expect_linear2_close(expert, random_tokens(random, 14, 96, is_token ? end : opposite));
    }
  }
}

// Rows with one group far below or far above the rest, as pruned blocks have them, garbage codes
// included: the far group counts for what it is.
TEST_P(TileExactnessTest, FarGroupsAmongNormalOnes) {
  for (const int far : {0, 1, 40, 87, 126, 160, 180}) {
    SCOPED_TRACE(testing::Message() << "seed 17, far byte " << far);
    Random random(17);
    Expert expert = random_expert(random, 64, 192, ScaleBytes::between(118, 122));
    Tokens tokens = random_tokens(random, 6, 192, ScaleBytes::between(116, 120));
    for (std::size_t row = 0; row < 64; row += 3)
      expert.linear2_scale[row * 6 + row % 6] = static_cast<std::uint8_t>(far);
    for (int row = 0; row < tokens.num_rows; row += 2)
      tokens.scales_of(row)[row] = static_cast<std::uint8_t>(far);
    expect_linear2_close(expert, tokens);
  }
}

TEST_P(TileExactnessTest, FarTokensThroughBothLinears) {
  for (const int byte : {30, 55, 70, 140, 150}) {
    SCOPED_TRACE(testing::Message() << "seed 18, byte " << byte);
    Random random(18);
    const int weights = 236 - byte;  // sums near 1, whatever the tokens
    Expert expert = random_expert(random, 96, 64, ScaleBytes::between(weights, weights + 2));
    expert.linear2_scale.assign(expert.linear2_scale.size(), 120);
    const Tokens tokens = random_tokens(random, 4, 96, ScaleBytes::between(byte, byte + 1));
    const std::vector<float> actual = widened(run_layer(kernel_, expert, tokens));
    const std::vector<float> expected =
        reference_linear2(expert, reference_linear1(expert, tokens));
    EXPECT_LT(relative_error(actual.data(), expected.data(), 4 * 96), 0.002);
  }
}

TEST_P(TileExactnessTest, AnOutlierOfFourThousandInOneGroup) {
  Random random(19);
  const Expert expert = random_expert(random, 128, 96, ScaleBytes::between(118, 121));
  Tokens tokens = random_tokens(random, 3, 128, ScaleBytes::between(114, 116));
  for (int row = 0; row < 3; ++row)
    tokens.scales_of(row)[row] = static_cast<std::uint8_t>(tokens.scales_of(row)[row] + 12);
  const std::vector<float> actual = widened(run_layer(kernel_, expert, tokens));
  const std::vector<float> expected = reference_linear2(expert, reference_linear1(expert, tokens));
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_LT(relative_error(&actual[row * 128], &expected[row * 128], 128), 0.002) << row;
}

// big + small - big, all within the 24 bits of fp32: nothing of the small one may be lost.
TEST_P(TileExactnessTest, CancellingTermsLeaveTheSmallOne) {
  Random random(20);
  Expert expert = random_expert(random, 32, 96, ScaleBytes::between(127, 127));
  std::fill(expert.linear2.begin(), expert.linear2.end(), std::uint8_t{0x22});  // all 1
  Tokens tokens = random_tokens(random, 2, 96, ScaleBytes::between(127, 127));
  for (int row = 0; row < 2; ++row) {
    std::fill_n(tokens.codes_of(row), 32, std::uint8_t{0x38});  // 1
    std::fill_n(tokens.codes_of(row) + 32, 32, std::uint8_t{0x38});
    std::fill_n(tokens.codes_of(row) + 64, 32, std::uint8_t{0xB8});  // -1
    tokens.scales_of(row)[0] = tokens.scales_of(row)[2] = static_cast<std::uint8_t>(127 + 15);
  }
  for (const float value : linear2(expert, tokens))
    EXPECT_EQ(value, 32.0F);
}

TEST_P(TileExactnessTest, ZerosStayZero) {
  Random random(22);
  const Expert expert = random_expert(random, 96, 96, ScaleBytes::between(110, 130));
  Tokens tokens = random_tokens(random, 4, 96, ScaleBytes::between(110, 130));
  std::fill_n(tokens.codes_of(0), 96, std::uint8_t{0});
  std::fill_n(tokens.scales_of(0), 3, std::uint8_t{127});
  std::fill_n(tokens.codes_of(1), 96, std::uint8_t{0x80});  // as from a stranger: -0, any scale
  std::fill_n(tokens.scales_of(1), 3, std::uint8_t{0});
  tokens.routing_weights[2] = 0;
  const std::vector<float> output = widened(run_layer(kernel_, expert, tokens));
  for (std::size_t i = 0; i < 3 * 96; ++i)
    ASSERT_EQ(output[i], 0.0F) << i;
  EXPECT_NE(output[3 * 96], 0.0F);

  Expert without_gate = expert;
  std::fill_n(without_gate.linear1.begin(), 96 * 48, std::uint8_t{0});
  for (const float value : widened(run_layer(kernel_, without_gate, tokens)))
    ASSERT_EQ(value, 0.0F);
}

TEST_P(TileExactnessTest, ANanTokenIsNanInItsOwnRowOnly) {
  for (const float clamp : {0.0F, 1.0F, 7.0F, HUGE_VALF}) {
    SCOPED_TRACE(testing::Message() << "seed 23, clamp " << clamp);
    Random random(23);
    Expert expert = random_expert(random, 96, 96, ScaleBytes::between(117, 121));
    expert.problem.activation.clamp = clamp;
    const Tokens clean = random_tokens(random, 15, 96, ScaleBytes::between(114, 118));
    Tokens dirty = clean;
    dirty.scales_of(2)[1] = 255;
    dirty.codes_of(7)[95] = 0x7F;
    dirty.codes_of(13)[0] = 0xFF;
    dirty.routing_weights[14] = std::nanf("");
    const std::vector<Bfloat16> expected = run_layer(kernel_, expert, clean);
    const std::vector<Bfloat16> actual = run_layer(kernel_, expert, dirty);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const std::size_t row = i / 96;
      const bool is_dirty = row == 2 || row == 7 || row == 13 || row == 14;
      ASSERT_EQ(actual[i].bits, is_dirty ? Bfloat16::kNan : expected[i].bits) << "row " << row;
    }
  }
}

TEST_P(TileExactnessTest, ANanWeightScaleIsNanInItsChannelOnly) {
  for (const bool is_wide : {false, true}) {
    Random random(24);
    Expert expert = random_expert(random, 96, 96, ScaleBytes::between(118, 121));
    if (is_wide) expert.linear2_scale[0] = 1;
    expert.linear2_scale[3 * 21 + 1] = 255;
    const Tokens tokens = random_tokens(random, 5, 96, ScaleBytes::between(114, 118));
    const std::vector<float> output = linear2(expert, tokens);
    for (std::size_t i = 0; i < output.size(); ++i)
      ASSERT_EQ(std::isnan(output[i]), i % 96 == 21) << i << ", wide " << is_wide;
  }
}

TEST_P(TileExactnessTest, SumsBeyondFp32AreNanAfterQuantising) {
  Random random(25);
  const Expert expert = random_expert(random, 64, 64, ScaleBytes::between(250, 250));
  const Tokens tokens = random_tokens(random, 3, 64, ScaleBytes::between(140, 140));
  for (const Bfloat16 value : run_layer(kernel_, expert, tokens))
    ASSERT_EQ(value.bits, Bfloat16::kNan);
}

// The epilogue of linear 1 on sums at the edges: the bits of the scalar formulas, where the set has
// fused multiply-adds.
TEST_P(TileExactnessTest, TheEpilogueHasTheBitsOfTheFormulas) {
  if (GetParam() == InstructionSet::kSse4) GTEST_SKIP() << "SSE4 has no fused multiply-add";
  std::vector<float> edges = {0.0F,
                              -0.0F,
                              HUGE_VALF,
                              -HUGE_VALF,
                              std::nanf(""),
                              3e38F,
                              -3e38F,
                              1e-38F,
                              1e-45F,
                              88.7F,
                              -88.7F,
                              -104.0F,
                              -200.0F};
  for (int k = -20; k <= 20; k += 4)  // groups whose largest value is next to 448 * 2^k
    for (const float factor : {1 - 1e-4F, 1.0F, 1 + 1e-4F})
      edges.push_back(std::ldexp(448.0F, k) * factor);
  for (unsigned seed = 30; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::normal_distribution<float> normal(0.0F, std::ldexp(1.0F, static_cast<int>(seed) - 45));
    std::vector<float> sums(64);
    for (float& sum : sums)
      sum = normal(random);
    if (seed % 3 == 0) sums[random() % 64] = edges[random() % edges.size()];
    const float weight = seed % 2 == 0 ? 1.0F : 0.37F;
    const Activation activation{
        .kind = seed % 4 < 2 ? ActivationKind::kSwiglu : ActivationKind::kSwigluOai,
        .clamp = seed % 5 == 0 ? 7.0F : HUGE_VALF};
    AlignedBytes rows[2] = {AlignedBytes(row_bytes(32)), AlignedBytes(row_bytes(32))};
    for (const bool is_scalar : {false, true})
      functions_of(is_scalar ? InstructionSet::kScalar : GetParam())
          ->finish_linear1({.sums = sums.data(),
                            .num_rows = 1,
                            .routing_weights = &weight,
                            .gate_bias = nullptr,
                            .up_bias = nullptr,
                            .activation = activation,
                            .rows = {rows[is_scalar ? 1 : 0].data(), row_bytes(32)},
                            .k = 32,
                            .group = 0});
    // 32 values and a scale; -0 and +0 are alike, and so is every NaN.
    EXPECT_EQ(row_scales(rows[0].data(), 32)[0], row_scales(rows[1].data(), 32)[0]);
    Bfloat16 values[2][32];
    for (int i = 0; i < 2; ++i)
      std::memcpy(values[i], rows[i].data(), sizeof values[i]);
    for (int i = 0; i < 32; ++i) {
      if (is_nan(values[0][i]) && is_nan(values[1][i])) continue;
      EXPECT_EQ(to_float(values[0][i]), to_float(values[1][i])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, TileExactnessTest, all_sets(), set_label);

}  // namespace
}  // namespace megamoe::cpu
