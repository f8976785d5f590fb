#include "numerics/bfloat16.hpp"

#include <gtest/gtest.h>

#include "float_bits.hpp"

namespace megamoe {
namespace {

constexpr std::uint32_t kCodes = 65536;

Bfloat16 code(std::uint32_t bits) {
  return {static_cast<std::uint16_t>(bits)};
}

TEST(Bfloat16, EveryCodeSurvivesARoundTripAndEveryNanBecomesTheOne) {
  for (std::uint32_t bits = 0; bits < kCodes; ++bits) {
    const float value = to_float(code(bits));
    if (is_nan(code(bits))) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(to_bfloat16(value).bits, 0x7FC0) << bits;
    } else {
      EXPECT_FALSE(std::isnan(value)) << bits;
      EXPECT_EQ(to_bfloat16(value).bits, bits);
    }
  }
}

// Midpoints of neighbours, infinity's included: they go to the even code, one fp32 below down, one
// above up.
TEST(Bfloat16, EveryMidpointTiesToEvenAndItsNeighboursDoNot) {
  for (std::uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
    for (std::uint32_t low = 0; low < 0x7F80; ++low) {
      const std::uint32_t middle = ((sign | low) << 16) + 0x8000;
      const std::uint32_t even = low % 2 == 0 ? low : low + 1;
      EXPECT_EQ(to_bfloat16(float_of(middle)).bits, sign | even);
      EXPECT_EQ(to_bfloat16(float_of(middle - 1)).bits, sign | low);
      EXPECT_EQ(to_bfloat16(float_of(middle + 1)).bits, sign | (low + 1));
    }
  }
}

TEST(Bfloat16, NansOfEveryKindBecomeTheOne) {
  for (const std::uint32_t bits : {0x7F800001U, 0x7FBFFFFFU, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU})
    EXPECT_EQ(to_bfloat16(float_of(bits)).bits, 0x7FC0) << bits;
}

TEST(Bfloat16, KeepsZerosSubnormalsAndInfinities) {
  EXPECT_EQ(to_bfloat16(0.0F).bits, 0x0000);
  EXPECT_EQ(to_bfloat16(-0.0F).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(kInfinity).bits, 0x7F80);
  EXPECT_EQ(to_bfloat16(-kInfinity).bits, 0xFF80);
  EXPECT_EQ(to_bfloat16(0x1p-133F).bits, 0x0001) << "the least subnormal";
  EXPECT_EQ(to_bfloat16(0x1p-134F).bits, 0x0000) << "half of it ties to zero";
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80) << "rounds up to infinity";
}

}  // namespace
}  // namespace megamoe
