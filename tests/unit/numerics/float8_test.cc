#include "numerics/float8.hpp"

#include <gtest/gtest.h>

#include "float_bits.hpp"
#include "nearest_code.hpp"

namespace megamoe {
namespace {

// Codes 0x00..0x7E by the format's definition: 4 exponent bits of bias 7, 3 mantissa bits.
std::vector<double> magnitudes() {
  std::vector<double> grid;
  for (int code = 0; code <= 0x7E; ++code) {
    const int exponent = code >> 3;
    const int mantissa = code & 7;
    grid.push_back(exponent == 0 ? std::ldexp(mantissa, -9)
                                 : std::ldexp(8 + mantissa, exponent - 7 - 3));
  }
  return grid;
}

Float8E4M3 code(std::size_t bits) {
  return {static_cast<std::uint8_t>(bits)};
}

TEST(Float8, EveryCodeHasTheValueOfItsDefinition) {
  const std::vector<double> grid = magnitudes();
  for (std::size_t bits = 0; bits < grid.size(); ++bits) {
    EXPECT_EQ(to_float(code(bits)), grid[bits]);
    EXPECT_EQ(to_float(code(bits | 0x80)), -grid[bits]);
    EXPECT_EQ(std::signbit(to_float(code(bits | 0x80))), true);
  }
  EXPECT_EQ(grid.back(), 448.0);
  EXPECT_TRUE(std::isnan(to_float(code(0x7F))) && is_nan(code(0x7F)));
  EXPECT_TRUE(std::isnan(to_float(code(0xFF))) && is_nan(code(0xFF)));
}

TEST(Float8, EveryCodeSurvivesARoundTrip) {
  for (std::size_t bits = 0; bits < 256; ++bits) {
    if (is_nan(code(bits))) continue;
    EXPECT_EQ(to_float8_e4m3(to_float(code(bits))).bits, bits);
  }
}

TEST(Float8, EveryMidpointTiesToEvenAndItsNeighboursDoNot) {
  const std::vector<double> grid = magnitudes();
  for (std::size_t low = 0; low + 1 < grid.size(); ++low) {
    const auto middle = static_cast<float>((grid[low] + grid[low + 1]) / 2);
    const std::size_t even = low % 2 == 0 ? low : low + 1;
    EXPECT_EQ(to_float8_e4m3(middle).bits, even) << middle;
    EXPECT_EQ(to_float8_e4m3(next_below(middle)).bits, low) << middle;
    EXPECT_EQ(to_float8_e4m3(next_above(middle)).bits, low + 1) << middle;
    EXPECT_EQ(to_float8_e4m3(-middle).bits, even | 0x80) << middle;
    EXPECT_EQ(to_float8_e4m3(-next_below(middle)).bits, low | 0x80) << middle;
    EXPECT_EQ(to_float8_e4m3(-next_above(middle)).bits, (low + 1) | 0x80) << middle;
  }
}

// Every exponent of fp32 with a few thousand mantissas each, against the search.
TEST(Float8, AgreesWithTheNearestCodeAllOverFp32) {
  const std::vector<double> grid = magnitudes();
  for (std::uint32_t bits = 0; bits < 0x7F800000; bits += 0x3FFB) {
    const std::uint8_t wanted = nearest_code(grid, float_of(bits));
    ASSERT_EQ(to_float8_e4m3(float_of(bits)).bits, wanted) << float_of(bits);
    ASSERT_EQ(to_float8_e4m3(-float_of(bits)).bits, wanted | 0x80) << float_of(bits);
  }
}

TEST(Float8, SaturatesAndMarksNan) {
  for (const float value : {448.0F, 463.9F, 464.0F, 480.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(to_float8_e4m3(value).bits, 0x7E) << value;
    EXPECT_EQ(to_float8_e4m3(-value).bits, 0xFE) << value;
  }
  for (const std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0xFFC00000U, 0xFFFFFFFFU})
    EXPECT_EQ(to_float8_e4m3(float_of(bits)).bits, 0x7F) << bits;
  EXPECT_EQ(to_float8_e4m3(0x1p-149F).bits, 0x00);
  EXPECT_EQ(to_float8_e4m3(-0x1p-149F).bits, 0x80);
}

}  // namespace
}  // namespace megamoe
