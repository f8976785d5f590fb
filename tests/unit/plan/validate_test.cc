// Every bound of a problem, on both sides, and that the sentence names field, value and bound.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

constexpr Problem kGood = {
    .ranks = 2, .experts = 6, .topk = 4, .hidden = 96, .intermediate = 160, .capacity = 7};

template <class Value>
std::string refusal(Value Problem::*field, Value value) {
  Problem problem = kGood;
  problem.*field = value;
  return error_of([&] { validate(problem); });
}

std::string activation_refusal(float Activation::*field, float value) {
  Problem problem = kGood;
  problem.activation.*field = value;
  return error_of([&] { validate(problem); });
}

TEST(Validate, TakesWhatIsWithinBounds) {
  EXPECT_EQ(error_of([] { validate(kGood); }), "");
  EXPECT_EQ(refusal(&Problem::ranks, 1), "");
  EXPECT_EQ(refusal(&Problem::topk, 1), "");
  EXPECT_EQ(refusal(&Problem::topk, kMaxTopk), "") << "more than E: ids may repeat";
  EXPECT_EQ(refusal(&Problem::hidden, 32), "");
  EXPECT_EQ(refusal(&Problem::hidden, kMaxLinearWidth), "");
  EXPECT_EQ(refusal(&Problem::intermediate, kMaxLinearWidth), "");
  EXPECT_EQ(refusal(&Problem::capacity, 1), "");
  EXPECT_EQ(refusal(&Problem::capacity, kMaxCapacity), "");
  const Problem most = {.ranks = kMaxRanks, .experts = 14 * kMaxRanks};
  EXPECT_EQ(error_of([&] { validate(most); }), "");
  EXPECT_EQ(activation_refusal(&Activation::clamp, 0.0F), "");
  EXPECT_EQ(activation_refusal(&Activation::clamp, std::numeric_limits<float>::infinity()), "");
  EXPECT_EQ(activation_refusal(&Activation::alpha, -1.0F), "");
  EXPECT_EQ(activation_refusal(&Activation::limit, 0.0F), "");
}

TEST(Validate, RefusesWhatIsNotByName) {
  EXPECT_EQ(refusal(&Problem::ranks, 0), "ranks is 0; it must be 1 to 72");
  EXPECT_EQ(refusal(&Problem::ranks, 73), "ranks is 73; it must be 1 to 72");
  EXPECT_EQ(refusal(&Problem::experts, 0), "experts is 0; it must be 1 to 1024");
  EXPECT_EQ(refusal(&Problem::experts, 1026), "experts is 1026; it must be 1 to 1024");
  EXPECT_EQ(refusal(&Problem::experts, 7),
            "experts is 7; it must be a multiple of ranks, which is 2");
  EXPECT_EQ(refusal(&Problem::topk, 0), "topk is 0; it must be 1 to 32");
  EXPECT_EQ(refusal(&Problem::topk, 33), "topk is 33; it must be 1 to 32");
  for (const int width : {0, -32, 16, 48, 33, kMaxLinearWidth + 32}) {
    const std::string text = std::to_string(width);
    EXPECT_EQ(refusal(&Problem::hidden, width),
              "hidden is " + text + "; it must be a multiple of 32 from 32 to 524288");
    EXPECT_EQ(refusal(&Problem::intermediate, width),
              "intermediate is " + text + "; it must be a multiple of 32 from 32 to 524288");
  }
  EXPECT_EQ(refusal(&Problem::capacity, 0), "capacity is 0; it must be 1 to 65536");
  EXPECT_EQ(refusal(&Problem::capacity, 65'537), "capacity is 65537; it must be 1 to 65536");
}

TEST(Validate, RefusesActivationsWithoutMeaning) {
  const float nan = std::nanf("");
  EXPECT_TRUE(contains(activation_refusal(&Activation::clamp, -0.5F), "clamp is -0.5"));
  EXPECT_TRUE(contains(activation_refusal(&Activation::clamp, nan), "clamp is nan"));
  EXPECT_TRUE(contains(activation_refusal(&Activation::limit, -1.0F), "limit is -1"));
  EXPECT_TRUE(contains(activation_refusal(&Activation::limit, nan), "limit is nan"));
  EXPECT_TRUE(contains(activation_refusal(&Activation::alpha, nan), "alpha is nan"));
  EXPECT_TRUE(contains(
      activation_refusal(&Activation::alpha, std::numeric_limits<float>::infinity()), "finite"));
  Problem problem = kGood;
  problem.activation.kind = static_cast<ActivationKind>(9);
  EXPECT_TRUE(contains(error_of([&] { validate(problem); }), "number 9"));
}

TEST(Validate, IsAskedByThePlanFirst) {
  Problem problem = kGood;
  problem.topk = 0;
  EXPECT_TRUE(contains(error_of([&] { choose_plan(problem, cpu(1)); }), "topk is 0"));
}

}  // namespace
}  // namespace megamoe::test
