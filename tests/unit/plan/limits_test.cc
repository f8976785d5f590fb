// What a machine allows follows from what it has: no number of SMs is assumed.
#include "plan/limits.hpp"

#include <gtest/gtest.h>

#include "machine/sm90/kernel_args.hpp"
#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

constexpr std::array kSmCounts = {1, 2, 78, 80, 114, 132, 148, 152, 160};

TEST(Limits, Sm90HasAWorkerForEverySmAndNoMore) {
  for (const int sms : kSmCounts) {
    SCOPED_TRACE(sms);
    EXPECT_EQ(sm90_limits(sms).workers, sms);
    const Plan plan = choose_plan(flash(8, 512), sm90_limits(sms));
    EXPECT_EQ(plan.workers, sms);
    EXPECT_GE(plan.experts_per_wave, 1);
    EXPECT_LE(plan.experts_per_wave, plan.problem.experts_per_rank());
  }
}

TEST(Limits, Sm100WorkersAreWholePairs) {
  for (const int sms : kSmCounts) {
    SCOPED_TRACE(sms);
    if (sms == 1) {
      const std::string sentence = error_of([&] { sm100_limits(sms); });
      EXPECT_TRUE(contains(sentence, "num_sms is 1") && contains(sentence, "pairs")) << sentence;
      continue;
    }
    EXPECT_EQ(sm100_limits(sms).workers, sms);
    EXPECT_EQ(sm100_limits(sms + 1).workers, sms);
  }
}

TEST(Limits, NoWorkerIsAnError) {
  EXPECT_TRUE(contains(error_of([] { cpu(0); }), "workers is 0"));
  EXPECT_TRUE(contains(error_of([] { sm90_limits(-3); }), "num_sms is -3"));
}

// A slice of a device is planned as that: nothing but the wave depends on how many SMs there are.
TEST(Limits, WorkersDecideNothingThatRanksMustAgreeOn) {
  for (const int sms : kSmCounts) {
    const Plan plan = choose_plan(pro(8, 8192), sm90_limits(sms));
    const Plan whole = choose_plan(pro(8, 8192), sm90_limits(132));
    EXPECT_EQ(plan.pool_rows, whole.pool_rows);
    EXPECT_EQ(plan.symmetric_items, whole.symmetric_items);
    EXPECT_EQ(plan.kernel, whole.kernel);
  }
  EXPECT_EQ(choose_plan(pro(8, 8192), cpu(1)).symmetric_items,
            choose_plan(pro(8, 8192), cpu(64)).symmetric_items);
}

// Expert parallelism pads once for the layer, never by the number of ranks.
TEST(Limits, PaddingIsOfTheMachineAlone) {
  const Problem odd = {.ranks = 4, .experts = 8, .hidden = 2880, .intermediate = 2912};
  for (const int ranks : {1, 2, 4, 8}) {
    Problem p = odd;
    p.ranks = ranks;
    EXPECT_EQ(choose_plan(p, cpu(2)).padded_hidden, 2880);
    EXPECT_EQ(choose_plan(p, sm90_limits(132)).padded_hidden, 2944);
    EXPECT_EQ(choose_plan(p, sm90_limits(132)).padded_intermediate, 2944);
    EXPECT_EQ(choose_plan(p, sm100_limits(148)).padded_hidden, 3072);
    EXPECT_EQ(choose_plan(p, sm100_limits(148)).padded_intermediate, 2944);
  }
}

// The planner's arithmetic is of any machine's; the kernels are measured and tested by their own.
TEST(Limits, ThePlannedRingIsTheHopperKernels) {
  for (const sm90::Operands operands : {sm90::Operands::kFloat8, sm90::Operands::kBfloat16})
    for (const Problem& p :
         {flash(8, 512), pro(2, 8192), Problem{.hidden = 2880, .intermediate = 2912}})
      for (const int tokens : {1, 32, 512}) {
        const Plan plan = choose_plan(p, sm90_limits(132, operands), {.expected_tokens = tokens});
        const Ring planned = ring_of(plan);
        const Ring own = sm90::ring_of(p, operands, plan.kernel.block_m, plan.pool_rows);
        EXPECT_EQ(planned, own) << "hidden " << p.hidden << ", block_m " << planned.block_m;
      }
}

}  // namespace
}  // namespace megamoe::test
