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

// What a plan says of Hopper is what its kernels are built with, whatever the problem: the shares
// of shared memory add up to all of it, and rows that are too wide are refused with the bound.
TEST(Sm90SharedMemory, IsThatOfTheKernels) {
  for (const sm90::Operands operands : {sm90::Operands::kFloat8, sm90::Operands::kBfloat16})
    for (const TileRule& tile : kSm90Tiles) {
      SCOPED_TRACE(tile.block_m);
      Limits limits = sm90_limits(132, operands);
      limits.tiles = {&tile, 1};
      const Plan plan = choose_plan(pro(8, 8192), limits);
      std::uint64_t itemised = 0;
      for (const PlanItem& item : plan.shared_items)
        itemised += item.bytes;
      EXPECT_EQ(itemised, static_cast<std::uint64_t>(plan.kernel.shared_bytes));
      EXPECT_LE(plan.kernel.shared_bytes, 227 * 1024);
      EXPECT_GE(plan.kernel.stages, 2);
    }
}

TEST(Sm90SharedMemory, RowsThatAreTooWideAreAnErrorWithTheBound) {
  Problem problem = flash(8, 8);
  problem.hidden = 1 << 16;
  const std::string sentence = error_of([&] { choose_plan(problem, sm90_limits(132)); });
  EXPECT_TRUE(contains(sentence, "hidden is 65536")) << sentence;
  const auto at = sentence.find("takes at most ");
  ASSERT_NE(at, std::string::npos) << sentence;
  const int most = std::stoi(sentence.substr(at + 14));
  EXPECT_GE(most, 8192) << "the widest layers that there are";
  Limits limits = sm90_limits(132);
  limits.tiles = limits.tiles.first(1);  // the sentence is of the first that fails
  problem.hidden = most;
  EXPECT_NO_THROW(choose_plan(problem, limits));
  problem.hidden = most + 32;
  EXPECT_FALSE(error_of([&] { choose_plan(problem, limits); }).empty());
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
  for (const int capacity : {164 * 1024, 226 * 1024, 227 * 1024})
    for (const int tokens : {1, 32, 128, 512, 8192}) {
      SCOPED_TRACE(testing::Message() << capacity << ' ' << tokens);
      Limits limits = sm100_limits(148);
      limits.shared_bytes = capacity;
      const Plan plan = choose_plan(pro(8, 8192), limits, {.expected_tokens = tokens});
      const SharedSum sum = sm100_shared(plan.kernel, plan.problem.experts);
      std::uint64_t itemised = 0;
      for (const PlanItem& item : plan.shared_items)
        itemised += item.bytes;
      EXPECT_EQ(itemised, static_cast<std::uint64_t>(plan.kernel.shared_bytes));
      EXPECT_LE(plan.kernel.shared_bytes, capacity);
      EXPECT_GT(plan.kernel.shared_bytes + sum.stage_bytes, capacity);
    }
}

// On a smaller chip some tiles still fit; what does not is an error with both sums.
TEST(SharedMemory, TooLittleForTwoStagesIsAnErrorWithBothSums) {
  Limits limits = sm100_limits(148);
  limits.shared_bytes = 90 * 1024;
  EXPECT_GE(choose_plan(pro(8, 128), limits).kernel.stages, 2);
  const std::string sentence = error_of([&] { choose_plan(pro(8, 8192), limits); });
  EXPECT_TRUE(contains(sentence, "92160 bytes") && contains(sentence, "two stages")) << sentence;
}

}  // namespace
}  // namespace megamoe::test
