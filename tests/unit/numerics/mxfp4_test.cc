#include "numerics/mxfp4.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "float_bits.hpp"

namespace megamoe {
namespace {

using Group = std::array<float, kGroupSize>;

double value_of(const Mxfp4Group& group, std::size_t i) {
  const std::uint8_t pair = group.packed[i / 2];
  const double code = to_float(i % 2 == 0 ? even_float4(pair) : odd_float4(pair));
  return std::ldexp(code, group.scale.exponent());
}

// What was MXFP4 once must not change when it comes back as bf16 or fp32.
TEST(Mxfp4, ValuesThatWereMxfp4ComeBackUnchanged) {
  constexpr std::uint32_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 2000; ++trial) {
    const int exponent = trial % 250 - 126;
    const auto largest_code = 1 + random() % 7;
    Group values{};
    for (float& value : values) {
      const auto code = static_cast<std::uint8_t>(random() % (largest_code + 1) | (random() & 8));
      value = static_cast<float>(std::ldexp(to_float(Float4E2M1{code}), exponent));
    }
    const Mxfp4Group group = quantize_group_to_mxfp4(values.data());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(value_of(group, i), values[i]) << exponent;
  }
}

TEST(Mxfp4, TheWiderScaleIsTheLeastThatSaturatesNothing) {
  for (int k = -127 - 20; k <= 125; ++k) {
    const auto boundary = static_cast<float>(std::ldexp(6.0, k));
    for (const float amax : {next_below(boundary), boundary, next_above(boundary)}) {
      int exponent = -127;
      while (std::ldexp(6.0, exponent) < amax)
        ++exponent;
      EXPECT_EQ(weight_scale(bits_of(amax)).exponent(), exponent) << amax;
    }
  }
}

TEST(Mxfp4, ChoosesTheBetterOfTwoScales) {
  constexpr std::uint32_t kSeed = 12;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  int chose_finer = 0;
  for (int trial = 0; trial < 500; ++trial) {
    Group values{};
    for (float& value : values)
      value = normal(random);
    const Ue8m0 wide = weight_scale(largest_magnitude_bits(values.data()));
    const Ue8m0 fine{static_cast<std::uint8_t>(wide.bits - 1)};
    const double at_wide = error_of(encode_mxfp4(values.data(), wide), values.data()).squared_error;
    const double at_fine = error_of(encode_mxfp4(values.data(), fine), values.data()).squared_error;
    const Mxfp4Group chosen = quantize_group_to_mxfp4(values.data());
    ASSERT_EQ(error_of(chosen, values.data()).squared_error, std::min(at_wide, at_fine));
    chose_finer += chosen.scale == fine ? 1 : 0;
  }
  EXPECT_GT(chose_finer, 0);
  EXPECT_LT(chose_finer, 500);
}

TEST(Mxfp4, RowsReportTheirError) {
  constexpr std::uint32_t kSeed = 13;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::vector<float> row(1024);
  for (float& value : row)
    value = 0.02F * normal(random);
  std::vector<std::uint8_t> packed(row.size() / 2), scales(row.size() / 32);
  const QuantizationError error = quantize_row_to_mxfp4(
      row.data(), static_cast<std::int64_t>(row.size()), packed.data(), scales.data());

  double squared_error = 0;
  double squared_norm = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint8_t pair = packed[i / 2];
    const Float4E2M1 code = i % 2 == 0 ? even_float4(pair) : odd_float4(pair);
    const double value = std::ldexp(to_float(code), Ue8m0{scales[i / 32]}.exponent());
    squared_error += (value - row[i]) * (value - row[i]);
    squared_norm += static_cast<double>(row[i]) * row[i];
  }
  EXPECT_NEAR(error.relative_l2(), std::sqrt(squared_error / squared_norm), 1e-9);
  // Gaussian weights lose about 11 % to four bits.
  EXPECT_GT(error.relative_l2(), 0.09);
  EXPECT_LT(error.relative_l2(), 0.13);

  QuantizationError twice = error;
  twice += error;
  EXPECT_DOUBLE_EQ(twice.relative_l2(), error.relative_l2());
}

TEST(Mxfp4, ZerosNansAndInfinities) {
  Group values{};
  EXPECT_EQ(quantize_group_to_mxfp4(values.data()).scale.bits, 127);
  EXPECT_EQ(quantize_group_to_mxfp4(values.data()).packed, (std::array<std::uint8_t, 16>{}));
  EXPECT_EQ(QuantizationError{}.relative_l2(), 0);
  for (const float bad : {kQuietNan, kInfinity, -kInfinity}) {
    values[9] = bad;
    EXPECT_EQ(quantize_group_to_mxfp4(values.data()).scale.bits, 255);
    EXPECT_EQ(quantize_group_to_mxfp4(values.data()).packed, (std::array<std::uint8_t, 16>{}));
  }
}

TEST(Mxfp4, SubnormalsAndTheLargestValuesKeepTheirScale) {
  Group values{};
  values[0] = 0x1p-127F;
  EXPECT_EQ(value_of(quantize_group_to_mxfp4(values.data()), 0), 0x1p-127);
  values[0] = std::numeric_limits<float>::max();
  const double largest = value_of(quantize_group_to_mxfp4(values.data()), 0);
  EXPECT_NEAR(largest / values[0], 1.0, 0.01);
}

}  // namespace
}  // namespace megamoe
