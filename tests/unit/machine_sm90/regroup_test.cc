#include "machine/sm90/regroup.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "numerics/float8.hpp"

namespace megamoe::sm90 {
namespace {

// Every code by every shift that can matter equals the format's own rounding of the scaled value.
TEST(Regroup, ScalesCodesAsTheFormatRounds) {
  for (int code = 0; code < 256; ++code) {
    const Float8E4M3 from{static_cast<std::uint8_t>(code)};
    for (int binades = -40; binades <= 17; ++binades) {
      const std::uint8_t got = scale_code(from.bits, binades);
      if (is_nan(from)) {
        ASSERT_EQ(got, kNanCode);
        continue;
      }
      const float exact = std::ldexp(to_float(from), binades);
      if (std::fabs(exact) > 448.0F) continue;  // no range asks for it
      ASSERT_EQ(got, to_float8_e4m3(exact).bits) << code << " by " << binades;
    }
  }
}

// 448 * 2^-headroom is the least power-of-two multiple that still holds the magnitude.
TEST(Regroup, HeadroomIsExact) {
  for (int magnitude = 1; magnitude <= 0x7E; ++magnitude) {
    const float value = to_float(Float8E4M3{static_cast<std::uint8_t>(magnitude)});
    EXPECT_LE(value, std::ldexp(448.0F, -headroom(magnitude))) << magnitude;
    EXPECT_GT(value, std::ldexp(448.0F, -headroom(magnitude) - 1)) << magnitude;
  }
}

// Groups that must not count: a zero group costs the row nothing, a NaN group makes NaN codes and
// no exponent.
TEST(Regroup, ZeroAndNanGroupsAskNothing) {
  EXPECT_EQ(asked_exponent(0, 127), kNothingAsked);
  EXPECT_EQ(asked_exponent(0x7E, kNanScaleByte), kNothingAsked);
  EXPECT_EQ(settled_exponent(kNothingAsked), 0);
  EXPECT_EQ(asked_exponent(0x7E, 100), -27);
  EXPECT_EQ(regrouped(0x10, shift_of(kNanScaleByte, 0)), kNanCode);
  EXPECT_EQ(regrouped(0x7E, shift_of(127, 3)), 0x7E - 24);
  // A NaN code in a group with a good scale asks what the largest number would.
  EXPECT_EQ(asked_exponent(0x7F, 127), 0);
}

// A group within 2^14 of the range's peak loses nothing.
TEST(Regroup, NormalCodesSurviveFourteenBinades) {
  for (int code = 0x78; code <= 0x7E; ++code)
    for (int binades = 0; binades >= -14; --binades)
      EXPECT_EQ(std::ldexp(to_float(Float8E4M3{static_cast<std::uint8_t>(code)}), binades),
                to_float(Float8E4M3{scale_code(static_cast<std::uint8_t>(code), binades)}));
}

}  // namespace
}  // namespace megamoe::sm90
