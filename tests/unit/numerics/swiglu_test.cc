#include "numerics/swiglu.hpp"

#include <gtest/gtest.h>

#include "float_bits.hpp"

namespace megamoe {
namespace {

Activation swiglu(float clamp) {
  return {.kind = ActivationKind::kSwiglu, .clamp = clamp};
}
Activation swiglu_oai(float alpha, float limit) {
  return {.kind = ActivationKind::kSwigluOai, .alpha = alpha, .limit = limit};
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(GatedActivation, SwigluIsItsFormulaWithinFp32) {
  for (int step = -162; step <= 162; ++step) {
    const float gate = 0.37F * static_cast<float>(step);
    for (const float up : {-3.5F, -0.25F, 1.0F, 40.0F}) {
      for (const float weight : {0.125F, 1.0F, -0.7F}) {
        const double wanted = gate * logistic(gate) * up * weight;
        const float got = gated_activation(gate, up, weight, swiglu(kInfinity));
        ASSERT_NEAR(got, wanted, std::abs(wanted) * 3e-7) << gate << ' ' << up;
      }
    }
  }
}

TEST(GatedActivation, SwigluOaiIsItsFormulaWithinFp32) {
  for (const float alpha : {1.702F, 1.0F, -0.5F}) {
    for (int step = -54; step <= 54; ++step) {
      const float gate = 0.37F * static_cast<float>(step);
      for (const float up : {-9.0F, -1.0F, 0.5F, 6.0F, 30.0F}) {
        const double bounded = std::min(gate, 7.0F);
        const double linear = std::clamp(up, -7.0F, 7.0F) + 1.0;
        const double wanted = bounded * logistic(alpha * bounded) * linear * 0.3F;
        const float got = gated_activation(gate, up, 0.3F, swiglu_oai(alpha, 7.0F));
        // alpha * gate is rounded before exp: a relative error of 20 * 2^-24 at most.
        ASSERT_NEAR(got, wanted, std::abs(wanted) * 3e-6) << alpha << ' ' << gate << ' ' << up;
      }
    }
  }
}

TEST(GatedActivation, ClampsGateFromAboveAndUpFromBothSides) {
  for (const float clamp : {0.0F, 1.0F, 7.0F, 10.0F}) {
    const Activation activation = swiglu(clamp);
    const Activation unbounded = swiglu(kInfinity);
    EXPECT_EQ(gated_activation(50, 2, 1, activation),
              gated_activation(clamp, std::min(2.0F, clamp), 1, unbounded));
    EXPECT_EQ(gated_activation(-50, 20, 1, activation), gated_activation(-50, clamp, 1, unbounded))
        << "gate has no lower bound";
    EXPECT_EQ(gated_activation(-1, -20, 1, activation), gated_activation(-1, -clamp, 1, unbounded));
  }
}

TEST(GatedActivation, EachKindIgnoresTheOthersParameters) {
  Activation plain = swiglu(kInfinity);
  plain.alpha = 99;
  plain.limit = 0;
  EXPECT_EQ(gated_activation(3, 4, 1, plain), gated_activation(3, 4, 1, swiglu(kInfinity)));
  Activation oai = swiglu_oai(1.702F, 7);
  oai.clamp = 0;
  EXPECT_EQ(gated_activation(3, 4, 1, oai), gated_activation(3, 4, 1, swiglu_oai(1.702F, 7)));
  EXPECT_NE(gated_activation(3, 4, 1, oai), gated_activation(3, 4, 1, plain));
}

// A clamp by fmin or a vector minimum would return the bound instead.
TEST(GatedActivation, NanPassesEveryClamp) {
  for (const float clamp : {0.0F, 1.0F, 7.0F, 10.0F, kInfinity}) {
    for (const Activation& activation : {swiglu(clamp), swiglu_oai(1.702F, clamp)}) {
      EXPECT_TRUE(std::isnan(gated_activation(kQuietNan, 1, 1, activation))) << clamp;
      EXPECT_TRUE(std::isnan(gated_activation(1, kQuietNan, 1, activation))) << clamp;
      EXPECT_TRUE(std::isnan(gated_activation(1, 1, kQuietNan, activation))) << clamp;
    }
  }
}

TEST(GatedActivation, ExtremeGatesFollowTheFormula) {
  const Activation activation = swiglu(kInfinity);
  EXPECT_TRUE(std::isnan(gated_activation(-kInfinity, 1, 1, activation))) << "-inf / inf";
  EXPECT_EQ(gated_activation(kInfinity, 1, 1, activation), kInfinity);
  EXPECT_EQ(bits_of(gated_activation(-3e38F, 1, 1, activation)), 0x80000000U);
  EXPECT_EQ(gated_activation(3e38F, 1, 1, activation), 3e38F);
  EXPECT_EQ(gated_activation(0, 5, 1, activation), 0.0F);
  EXPECT_EQ(gated_activation(5, 0, 1, activation), 0.0F);
  EXPECT_EQ(gated_activation(5, 5, 0, activation), 0.0F);
}

TEST(GatedActivation, TakesAnotherExponential) {
  const auto one = [](float) { return 1.0F; };
  EXPECT_EQ(gated_activation(6, 5, 1, swiglu(kInfinity), one), 15.0F);
}

}  // namespace
}  // namespace megamoe
