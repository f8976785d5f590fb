#include "numerics/float4.hpp"

#include <gtest/gtest.h>

#include "float_bits.hpp"
#include "nearest_code.hpp"

namespace megamoe {
namespace {

const std::vector<double> kGrid = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

Float4E2M1 code(std::size_t bits) {
  return {static_cast<std::uint8_t>(bits)};
}

TEST(Float4, AllSixteenCodesHaveTheirValuesAndSurviveARoundTrip) {
  for (std::size_t bits = 0; bits < 8; ++bits) {
    EXPECT_EQ(to_float(code(bits)), kGrid[bits]);
    EXPECT_EQ(to_float(code(bits | 8)), -kGrid[bits]);
    EXPECT_TRUE(std::signbit(to_float(code(bits | 8))));
    EXPECT_EQ(to_float4_e2m1(to_float(code(bits))).bits, bits);
    EXPECT_EQ(to_float4_e2m1(to_float(code(bits | 8))).bits, bits | 8);
  }
}

// The classic mistake is to round half up, or half down: here is where each tie goes.
TEST(Float4, MidpointsTieToEvenAndTheirNeighboursDoNot) {
  for (std::size_t low = 0; low < 7; ++low) {
    const auto middle = static_cast<float>((kGrid[low] + kGrid[low + 1]) / 2);
    const std::size_t even = low % 2 == 0 ? low : low + 1;
    EXPECT_EQ(to_float4_e2m1(middle).bits, even) << middle;
    EXPECT_EQ(to_float4_e2m1(next_below(middle)).bits, low) << middle;
    EXPECT_EQ(to_float4_e2m1(next_above(middle)).bits, low + 1) << middle;
    EXPECT_EQ(to_float4_e2m1(-middle).bits, even | 8) << middle;
    EXPECT_EQ(to_float4_e2m1(-next_below(middle)).bits, low | 8) << middle;
    EXPECT_EQ(to_float4_e2m1(-next_above(middle)).bits, (low + 1) | 8) << middle;
  }
}

TEST(Float4, AgreesWithTheNearestCodeAllOverFp32) {
  for (std::uint32_t bits = 0; bits < 0x7F800000; bits += 0x3FFB) {
    const std::uint8_t wanted = nearest_code(kGrid, float_of(bits));
    ASSERT_EQ(to_float4_e2m1(float_of(bits)).bits, wanted) << float_of(bits);
    ASSERT_EQ(to_float4_e2m1(-float_of(bits)).bits, wanted | 8) << float_of(bits);
  }
}

TEST(Float4, SaturatesWhatItCannotHold) {
  for (const float value : {6.0F, 7.0F, 8.0F, 1e30F, kInfinity}) {
    EXPECT_EQ(to_float4_e2m1(value).bits, 7) << value;
    EXPECT_EQ(to_float4_e2m1(-value).bits, 15) << value;
  }
  EXPECT_EQ(to_float4_e2m1(kQuietNan).bits & 7, 7) << "there is no NaN";
  EXPECT_EQ(to_float4_e2m1(0x1p-149F).bits, 0);
}

TEST(Float4, TheLowNibbleIsTheEvenElement) {
  EXPECT_EQ(pack_float4(code(0x1), code(0xE)), 0xE1);
  for (std::size_t even = 0; even < 16; ++even) {
    for (std::size_t odd = 0; odd < 16; ++odd) {
      const std::uint8_t pair = pack_float4(code(even), code(odd));
      EXPECT_EQ(even_float4(pair).bits, even);
      EXPECT_EQ(odd_float4(pair).bits, odd);
    }
  }
}

}  // namespace
}  // namespace megamoe
