#include "numerics/exponential.hpp"

#include <gtest/gtest.h>

#include "float_bits.hpp"

namespace megamoe {
namespace {

// The distance from the exact value, in units of the last place that fp32 has there.
double error_in_last_places(float got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Every 257th fp32 (a prime, so that all low bits occur) of the range where exp is neither 0 nor
// infinite.
TEST(Exponential, IsWithinItsBoundDenselyOverFp32) {
  double worst = 0;
  float worst_at = 0;
  for (const std::uint32_t sign : {0U, 0x80000000U}) {
    for (std::uint32_t bits = bits_of(1e-9F); float_of(bits) < 103.9F; bits += 257) {
      const float x = float_of(sign | bits);
      if (x > 88.72283F) break;
      const double error = error_in_last_places(exponential(x), std::exp(static_cast<double>(x)));
      if (error > worst) {
        worst = error;
        worst_at = x;
      }
    }
  }
  EXPECT_LE(worst, 1.02) << "at " << worst_at;
  EXPECT_GE(worst, 0.5) << "no fp32 result can be better: the test measures nothing";
}

TEST(Exponential, ReturnsOneForAllThatIsTooSmallToMatter) {
  for (const float x : {0.0F, 1e-9F, 0x1p-149F, 0x1p-126F}) {
    EXPECT_EQ(exponential(x), 1.0F) << x;
    EXPECT_EQ(exponential(-x), 1.0F) << x;
  }
}

TEST(Exponential, OverflowsUnderflowsAndPassesNan) {
  const float last_finite = 88.72283F;
  EXPECT_TRUE(std::isfinite(exponential(last_finite)));
  EXPECT_GT(exponential(last_finite), 3.40e38F);
  for (const float x : {next_above(next_above(last_finite)), 89.0F, 1000.0F, 3e38F, kInfinity})
    EXPECT_EQ(exponential(x), kInfinity) << x;
  EXPECT_EQ(exponential(-103.97207F), 0x1p-149F) << "the least subnormal";
  for (const float x : {-103.97209F, -104.0F, -1000.0F, -3e38F, -kInfinity})
    EXPECT_EQ(bits_of(exponential(x)), 0U) << x;
  for (const std::uint32_t bits : {0x7F800001U, 0x7FC00000U, 0xFFC00000U, 0xFFFFFFFFU})
    EXPECT_TRUE(std::isnan(exponential(float_of(bits)))) << bits;
}

// Across the seams of the argument reduction and into the subnormals, a larger x never gives less.
TEST(Exponential, NeverDecreasesByMoreThanItsError) {
  for (int n = -149; n <= 127; ++n) {
    const auto seam = static_cast<float>((n + 0.5) * std::log(2.0));
    EXPECT_LE(exponential(next_below(seam)), next_above(exponential(next_above(seam)))) << seam;
  }
}

TEST(Exponential, IsTheSameWhenTheCompilerEvaluatesIt) {
  constexpr float kCompiled[] = {exponential(-80.3F),
                                 exponential(-1.7F),
                                 exponential(0.35F),
                                 exponential(59.301644F),
                                 exponential(88.7F)};
  const volatile float at[] = {-80.3F, -1.7F, 0.35F, 59.301644F, 88.7F};
  for (std::size_t i = 0; i < std::size(kCompiled); ++i)
    EXPECT_EQ(bits_of(exponential(at[i])), bits_of(kCompiled[i])) << at[i];
}

}  // namespace
}  // namespace megamoe
