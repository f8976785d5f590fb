#include "numerics/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "float_bits.hpp"

namespace megamoe {
namespace {

using Group = std::array<float, kGroupSize>;

Group group_with(float largest) {
  Group values{};
  values[5] = -largest;
  values[17] = largest / 3;
  return values;
}

// The definition, by trial: exact, as 448 * 2^e and every fp32 are fp64.
int least_exponent(float amax) {
  int exponent = -127;
  while (std::ldexp(448.0, exponent) < amax)
    ++exponent;
  return exponent;
}

double value_of(const QuantizedGroup& group, std::size_t i) {
  return std::ldexp(double{to_float(Float8E4M3{group.codes[i]})}, group.scale.exponent());
}

void expect_as_defined(const Group& values) {
  const QuantizedGroup group = quantize_group(values.data());
  float amax = 0;
  for (const float value : values)
    amax = std::max(amax, std::abs(value));
  const int exponent = least_exponent(amax);
  ASSERT_EQ(group.scale.exponent(), exponent) << amax;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Exact in fp64 and far above fp32's subnormals: the single rounding that is asked for. Scaling
    // keeps it a single one, as what fp32 can't hold of it is below half of the least code.
    const double scaled = std::ldexp(static_cast<double>(values[i]), -exponent);
    ASSERT_EQ(group.codes[i], to_float8_e4m3(static_cast<float>(scaled)).bits) << values[i];
    if (std::abs(scaled) >= 0x1p-6) {
      ASSERT_LE(std::abs(value_of(group, i) - values[i]), std::abs(values[i]) / 16) << values[i];
    }
  }
}

TEST(QuantizeGroup, ScaleIsRightAtEveryBoundaryAndItsNeighbours) {
  for (int k = -127 - 22; k <= 119; ++k) {
    const auto boundary = static_cast<float>(std::ldexp(448.0, k));
    for (const float amax : {next_below(boundary), boundary, next_above(boundary)}) {
      if (amax == 0) continue;
      SCOPED_TRACE(amax);
      expect_as_defined(group_with(amax));
    }
  }
}

TEST(QuantizeGroup, LargestFiniteValueIsInRange) {
  const float largest = std::numeric_limits<float>::max();
  const QuantizedGroup group = quantize_group(group_with(largest).data());
  EXPECT_EQ(group.scale.bits, 247);
  expect_as_defined(group_with(largest));
}

// A relative change of 1e-4 around a boundary doubles the grid; the values must not jump for it.
TEST(QuantizeGroup, StaysMonotoneWhereTheGridDoubles) {
  for (int k = -100; k <= 100; k += 25) {
    double last = 0;
    double last_third = 0;
    for (int step = -8; step <= 8; ++step) {
      const auto amax = static_cast<float>(std::ldexp(448.0 * (1 + step * 1e-4), k));
      const QuantizedGroup group = quantize_group(group_with(amax).data());
      ASSERT_GE(-value_of(group, 5), last) << amax;
      ASSERT_GE(value_of(group, 17), last_third) << amax;
      ASSERT_LE(std::abs(-value_of(group, 5) - amax), amax / 16) << amax;
      last = -value_of(group, 5);
      last_third = value_of(group, 17);
    }
  }
}

TEST(QuantizeGroup, RandomGroupsOfEveryMagnitudeAreAsDefined) {
  constexpr std::uint32_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<int> exponent(-149, 127);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 3000; ++trial) {
    const int base = exponent(random);
    const int spread = trial % 3 == 0 ? 40 : 1;
    Group values{};
    for (int i = 0; i < kGroupSize; ++i) {
      const double mantissa = std::clamp(normal(random), -1.9, 1.9);
      values[static_cast<unsigned>(i)] =
          static_cast<float>(std::ldexp(mantissa, base - i % spread));
    }
    if (std::all_of(values.begin(), values.end(), [](float value) { return value == 0; })) continue;
    expect_as_defined(values);
  }
}

TEST(QuantizeGroup, ZerosGiveScaleOneAndCodesZero) {
  Group values{};
  values[3] = -0.0F;
  const QuantizedGroup group = quantize_group(values.data());
  EXPECT_EQ(group.scale.bits, 127);
  for (const std::uint8_t code : group.codes)
    EXPECT_EQ(code, 0);
}

TEST(QuantizeGroup, SubnormalGroupsKeepTheirValues) {
  Group values{};
  values[0] = 0x1p-127F;  // times 2^127 it is 1
  values[1] = -0x1p-136F;
  values[2] = 0x1p-149F;
  const QuantizedGroup group = quantize_group(values.data());
  EXPECT_EQ(group.scale.bits, 0);
  EXPECT_EQ(group.codes[0], 0x38);
  EXPECT_EQ(group.codes[1], 0x81);
  EXPECT_EQ(group.codes[2], 0x00);
}

TEST(QuantizeGroup, NanOrInfinityAnywhereMarksTheWholeGroup) {
  for (std::size_t at = 0; at < kGroupSize; ++at) {
    for (const float bad : {kQuietNan, -kQuietNan, kInfinity, -kInfinity}) {
      Group values{};
      values.fill(1.0F);
      values[at] = bad;
      const QuantizedGroup group = quantize_group(values.data());
      EXPECT_EQ(group.scale.bits, 255);
      for (const std::uint8_t code : group.codes)
        EXPECT_EQ(code, 0x7F);
    }
  }
}

TEST(QuantizeRow, Bf16AndFp32RowsAgreeAndGroupsAreIndependent) {
  constexpr std::size_t kCount = 96;
  std::array<Bfloat16, kCount> narrow{};
  std::array<float, kCount> wide{};
  for (std::size_t i = 0; i < kCount; ++i) {
    narrow[i] =
        to_bfloat16(std::ldexp(static_cast<float>(i) - 40.5F, static_cast<int>(i / 32) * 9));
    wide[i] = to_float(narrow[i]);
  }
  std::array<std::uint8_t, kCount> codes{}, other_codes{};
  std::array<std::uint8_t, 3> scales{}, other_scales{};
  quantize_row(narrow.data(), kCount, codes.data(), scales.data());
  quantize_row(wide.data(), kCount, other_codes.data(), other_scales.data());
  EXPECT_EQ(codes, other_codes);
  EXPECT_EQ(scales, other_scales);
  for (std::size_t group = 0; group < 3; ++group) {
    const QuantizedGroup wanted = quantize_group(wide.data() + group * kGroupSize);
    EXPECT_EQ(scales[group], wanted.scale.bits);
    EXPECT_TRUE(std::equal(wanted.codes.begin(), wanted.codes.end(), &codes[group * kGroupSize]));
  }
}

}  // namespace
}  // namespace megamoe
