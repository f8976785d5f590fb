// The sums of shared memory and TMEM against figures that were worked out elsewhere.
#include "plan/shared_memory.hpp"

#include <gtest/gtest.h>

#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

// The public original's kernel has the same parts: bytes a stage, stages and bytes in all of its
// largest layer, as derived from its source.
TEST(Sm100SharedMemory, EqualsThePublicOriginals) {
  struct Row {
    int block_m, stage_bytes, stages, shared_bytes, tmem_columns;
  };
  constexpr std::array kRows = {
      Row{16, 36'880, 5, 205'332, 64},
      Row{32, 19'472, 10, 220'004, 128},
      Row{64, 21'520, 9, 218'900, 256},
      Row{96, 23'568, 8, 213'828, 256},
      Row{128, 25'616, 7, 213'300, 512},
      Row{192, 30'224, 6, 215'332, 512},
  };
  ASSERT_EQ(kRows.size(), kGpuTiles.size());
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    SCOPED_TRACE(kRows[i].block_m);
    Limits limits = sm100_limits(148);
    limits.tiles = {&kGpuTiles[i], 1};
    const KernelPlan kernel = choose_plan(pro(8, 8192), limits).kernel;
    EXPECT_EQ(kernel.block_m, kRows[i].block_m);
    EXPECT_EQ(sm100_shared(kernel, 384).stage_bytes, kRows[i].stage_bytes);
    EXPECT_EQ(kernel.stages, kRows[i].stages);
    EXPECT_EQ(kernel.shared_bytes, kRows[i].shared_bytes);
    EXPECT_EQ(kernel.tmem_columns, kRows[i].tmem_columns);
  }
}

// Columns used by hand: 2 x 192 accumulators, 8 and 4 of scales.
TEST(Sm100SharedMemory, TmemColumnsHoldTheirSum) {
  EXPECT_EQ(tmem_columns_used(192), 396);
  EXPECT_EQ(tmem_columns_used(16), 40);
  for (const TileRule& tile : kGpuTiles) {
    EXPECT_GE(tmem_columns_of(tile.block_m), tmem_columns_used(tile.block_m));
    EXPECT_LE(tmem_columns_of(tile.block_m), 512);
  }
}

// The measured mainloop for few tokens: 256 rows x K128 of codes in 16 KiB and 4-bit exponents in
// 512 bytes, tokens with their scales, in ten stages.
TEST(Sm90SharedMemory, FewTokensLeaveTenStages) {
  const KernelPlan kernel = choose_plan(pro(8, 8), sm90_limits(132)).kernel;
  ASSERT_EQ(kernel.block_m, 16);
  EXPECT_EQ(sm90_shared(kernel, 384).stage_bytes, 19 * 1024);
  EXPECT_EQ(kernel.stages, 10);
  EXPECT_EQ(kernel.threads(), 640);
}

TEST(SharedMemory, PullsAreEqualPiecesOfAtMostFourKibibytes) {
  EXPECT_EQ(pull_bytes_of(4096), 4096);
  EXPECT_EQ(pull_bytes_of(7168), 3584);
  EXPECT_EQ(pull_bytes_of(5120), 2560);
  for (int row = 32; row <= kMaxLinearWidth; row = row * 5 / 4 / 16 * 16 + 16) {
    const int piece = pull_bytes_of(row);
    EXPECT_LE(piece, 4096);
    EXPECT_EQ(piece % 16, 0);
    EXPECT_EQ(ceil_div(row, piece), ceil_div(row, 4096)) << row;
  }
}

// The sum that is printed is the sum that is asked for, and one more stage would not fit.
TEST(SharedMemory, TakesAllTheStagesThatFit) {
  for (const MachineKind machine : {MachineKind::kSm90, MachineKind::kSm100})
    for (const int capacity : {164 * 1024, 226 * 1024, 227 * 1024})
      for (const int tokens : {1, 32, 128, 512, 8192}) {
        SCOPED_TRACE(testing::Message() << name(machine) << ' ' << capacity << ' ' << tokens);
        Limits limits = usual_limits(machine);
        limits.shared_bytes = capacity;
        const Plan plan = choose_plan(pro(8, 8192), limits, {.expected_tokens = tokens});
        const SharedSum sum = shared_sum(plan.kernel, plan.problem.experts);
        std::uint64_t itemised = 0;
        for (const PlanItem& item : plan.shared_items)
          itemised += item.bytes;
        EXPECT_EQ(itemised, static_cast<std::uint64_t>(plan.kernel.shared_bytes));
        EXPECT_LE(plan.kernel.shared_bytes, capacity);
        EXPECT_GT(plan.kernel.shared_bytes + sum.stage_bytes, capacity);
      }
}

// On a smaller chip the low tiles still fit; what does not is an error with both sums.
TEST(SharedMemory, TooLittleForTwoStagesIsAnErrorWithBothSums) {
  Limits limits = sm90_limits(132);
  limits.shared_bytes = 99 * 1024;
  EXPECT_GE(choose_plan(pro(8, 8), limits).kernel.stages, 2);
  const std::string sentence = error_of([&] { choose_plan(pro(8, 8192), limits); });
  EXPECT_TRUE(contains(sentence, "101376 bytes") && contains(sentence, "two stages")) << sentence;
}

}  // namespace
}  // namespace megamoe::test
