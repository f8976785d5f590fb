#include <gtest/gtest.h>

#include <set>

#include "machine/sm100/plans.hpp"

namespace megamoe::sm100 {
namespace {

template <int kBlockM>
void expect_good_plan() {
  SCOPED_TRACE(kBlockM);
  constexpr Plan kPlan = Choice<kBlockM>::kPlan;
  const int end = shared_tail(sizeof(SharedStorage<kPlan>), kWidestProblem).end;
  EXPECT_LE(end, kSharedMemoryUsed);
  EXPECT_GT(end + stage_bytes(kPlan), kSharedMemoryUsed) << "one more stage would fit";
  EXPECT_EQ(static_cast<int>(sizeof(Stage<kPlan>)), stage_bytes(kPlan));
  EXPECT_GE(kPlan.stages, 4);
  EXPECT_LE(kPlan.registers_used(), kRegisterBudget);
  EXPECT_EQ(what_is_wrong(kPlan), nullptr);
}

TEST(Plans, UseTheSharedMemoryThatThereIs) {
  expect_good_plan<16>();
  expect_good_plan<32>();
  expect_good_plan<64>();
  expect_good_plan<96>();
  expect_good_plan<128>();
  expect_good_plan<192>();
}

// No column of tensor memory belongs to two things, and all lie inside the allocation, which is a
// power of two.
TEST(TmemColumns, AreApartAndInside) {
  for (const int block_m : kBlockSizes) {
    SCOPED_TRACE(block_m);
    const TmemColumns columns{block_m};
    std::set<int> taken;
    std::size_t count = 0;
    const auto take = [&](int first, int width) {
      for (int c = first; c < first + width; ++c)
        taken.insert(c);
      count += static_cast<std::size_t>(width);
    };
    for (int i = 0; i < kAccumulators; ++i)
      take(columns.accumulator(i), block_m);
    take(columns.token_scales(), columns.token_scale_columns());
    take(columns.weight_scales(), kScaleCopyColumns);
    EXPECT_EQ(taken.size(), count);
    EXPECT_LT(*taken.rbegin(), columns.allocated());
    EXPECT_EQ(columns.allocated() & (columns.allocated() - 1), 0);
    EXPECT_LE(columns.allocated(), kTmemColumnLimit);
    EXPECT_GE(columns.token_scale_columns() * kLanesPerColumn, block_m);
  }
}

TEST(Plan, IsRefusedWithAReason) {
  Plan plan = without_stages(64);
  plan.block_m = 24;
  EXPECT_NE(what_is_wrong(plan), nullptr);
  plan = without_stages(64);
  plan.registers.epilogue = 208;
  EXPECT_NE(what_is_wrong(plan), nullptr);
  plan = without_stages(16);
  plan.epilogue_warpgroups = 2;
  EXPECT_NE(what_is_wrong(plan), nullptr);
}

// Operands start where the tensor core and the copy engine want them.
TEST(Stage, IsAligned) {
  constexpr Plan kPlan = Choice<96>::kPlan;
  using S = Stage<kPlan>;
  EXPECT_EQ(sizeof(S) % 1024, 0U);
  EXPECT_EQ(offsetof(S, tokens) % 1024, 0U);
  EXPECT_EQ(offsetof(S, weights) % 1024, 0U);
  EXPECT_EQ(offsetof(S, token_scales) % 128, 0U);
  EXPECT_EQ(offsetof(S, weight_scales) % 128, 0U);
}

}  // namespace
}  // namespace megamoe::sm100
