// choose_plan is a pure function, and its parts turn into what the protocol takes.
#include "plan/choose.hpp"

#include <gtest/gtest.h>

#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

TEST(ChoosePlan, IsDeterministic) {
  for (const MachineKind machine : kMachines)
    EXPECT_EQ(choose_plan(pro(8, 512), usual_limits(machine)),
              choose_plan(pro(8, 512), usual_limits(machine)));
}

TEST(ChoosePlan, ExpectsTheCapacityUnlessToldAndNeverMore) {
  const auto expected = [](std::optional<int> hint) {
    return choose_plan(flash(8, 512), sm90_limits(132), {.expected_tokens = hint}).expected_tokens;
  };
  EXPECT_EQ(expected({}), 512);
  EXPECT_EQ(expected(0), 0);
  EXPECT_EQ(expected(32), 32);
  EXPECT_EQ(expected(-5), 0);
  EXPECT_EQ(expected(100'000), 512);
}

TEST(ChoosePlan, CountsTheRowsOfAnExpert) {
  const Plan plan = choose_plan(flash(8, 512), sm90_limits(132), {.expected_tokens = 32});
  EXPECT_EQ(plan.expected_rows, 32.0 * 8 * 6 / 256);
  EXPECT_EQ(choose_plan(flash(8, 512), cpu(2), {.expected_tokens = 0}).expected_rows, 0.0);
}

// A rank that expects nothing may still receive rows of others, so its plan must be a whole one.
TEST(ChoosePlan, PlansForNoTokensToo) {
  for (const MachineKind machine : kMachines) {
    const Plan plan = choose_plan(pro(8, 1), usual_limits(machine), {.expected_tokens = 0});
    EXPECT_EQ(plan.kernel.block_m, machine == MachineKind::kSm90 ? 8 : 16) << "the lowest";
    EXPECT_GE(plan.pool_rows, 384);
    EXPECT_GE(plan.experts_per_wave, 1);
  }
}

// Ranks may bring different hints and still share one layout of symmetric memory.
TEST(ChoosePlan, TheHintDecidesNothingThatRanksMustAgreeOn) {
  for (const MachineKind machine : kMachines) {
    const Plan most = choose_plan(pro(8, 8192), usual_limits(machine));
    for (const int tokens : {0, 1, 32, 512}) {
      const Plan plan =
          choose_plan(pro(8, 8192), usual_limits(machine), {.expected_tokens = tokens});
      EXPECT_EQ(plan.pool_rows, most.pool_rows);
      EXPECT_EQ(plan.symmetric_items, most.symmetric_items);
      EXPECT_EQ(plan.padded_hidden, most.padded_hidden);
    }
  }
}

TEST(ChoosePlan, BecomesARingThatFillsThePool) {
  for (const MachineKind machine : kMachines)
    for (const int tokens : {1, 32, 128, 8192}) {
      const Plan plan =
          choose_plan(flash(4, 8192), usual_limits(machine), {.expected_tokens = tokens});
      const Ring ring = ring_of(plan);
      const std::int64_t idle = plan.pool_rows - std::int64_t{ring.blocks} * ring.block_m;
      EXPECT_GE(idle, 0);
      EXPECT_LT(idle, ring.block_m);
      EXPECT_EQ(ring.linear1_blocks, plan.linear1_blocks);
      EXPECT_EQ(ring.linear2_blocks, plan.linear2_blocks);
      EXPECT_EQ(ring.row({ring.blocks - 1}, ring.block_m - 1), plan.pool_rows - idle - 1);
    }
}

TEST(ChoosePlan, CountsTheWorkspaceThatIsCarved) {
  for (const MachineKind machine : kMachines) {
    const Limits limits = usual_limits(machine);
    const Plan plan = choose_plan(flash(4, 512), limits);
    const Workspace workspace = workspace_of(plan, limits);
    EXPECT_EQ(workspace.bytes, plan.symmetric_bytes);
    EXPECT_EQ(workspace.pool_rows, plan.pool_rows);
  }
}

TEST(ChoosePlan, EachFieldHasItsReason) {
  for (const MachineKind machine : kMachines) {
    const Plan plan = choose_plan(flash(4, 512), usual_limits(machine));
    for (const std::string_view field : {"expected_rows",
                                         "block_m",
                                         "block_n",
                                         "pool_rows",
                                         "symmetric_bytes",
                                         "experts_per_wave"})
      EXPECT_FALSE(why_of(plan, field).empty()) << field;
    EXPECT_EQ(why_of(plan, "stages").empty(), machine == MachineKind::kCpu);
    EXPECT_EQ(why_of(plan, "tmem_columns").empty(), machine != MachineKind::kSm100);
  }
}

// More tokens never get lower tiles, and on a GPU, whose blocks have one width, never larger waves.
TEST(ChoosePlan, IsMonotoneInTokens) {
  for (const MachineKind machine : kMachines) {
    int block_m = 0;
    int wave = kMaxExperts;
    for (int tokens = 0; tokens <= 8192; tokens += 1 + tokens / 7) {
      const Plan plan =
          choose_plan(pro(8, 8192), usual_limits(machine), {.expected_tokens = tokens});
      SCOPED_TRACE(testing::Message() << name(machine) << ", " << tokens << " tokens");
      EXPECT_GE(plan.kernel.block_m, block_m);
      block_m = plan.kernel.block_m;
      if (machine == MachineKind::kCpu) continue;
      EXPECT_LE(plan.experts_per_wave, wave);
      wave = plan.experts_per_wave;
    }
  }
}

}  // namespace
}  // namespace megamoe::test
