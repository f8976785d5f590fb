// Every row of every table is reachable, fires on its own side of its threshold, and gives a plan
// that can be built.
#include "plan/rules.hpp"

#include <gtest/gtest.h>

#include "plan/checked.hpp"
#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

// Two experts and top-1: 2 * rows tokens give each expert `rows`, in halves.
Plan plan_at(double rows, const Limits& limits) {
  const int tokens = static_cast<int>(2 * rows);
  return choose_plan(two_experts(tokens), limits);
}

TEST(TileRules, EveryRowFiresUpToItsThresholdAndNotAbove) {
  for (const MachineKind machine : kMachines) {
    const Limits limits = usual_limits(machine);
    for (std::size_t i = 0; i + 1 < limits.tiles.size(); ++i) {
      const TileRule& rule = limits.tiles[i];
      SCOPED_TRACE(rule.block_m);
      const Plan at = plan_at(rule.up_to_rows_per_expert, limits);
      EXPECT_EQ(at.expected_rows, rule.up_to_rows_per_expert);
      EXPECT_EQ(at.kernel.block_m, rule.block_m);
      EXPECT_TRUE(contains(why_of(at, "block_m"), rule.why));
      const Plan above = plan_at(rule.up_to_rows_per_expert + 0.5, limits);
      EXPECT_EQ(above.kernel.block_m, limits.tiles[i + 1].block_m);
    }
  }
}

TEST(TileRules, ThresholdsOfTheGpusAreThoseOfUpstream) {
  constexpr std::array kUpstream = {8.5, 16.5, 32.5, 64.5, 96.5};
  constexpr std::array kHeights = {16, 32, 64, 96, 128, 192};
  ASSERT_EQ(kSm100Tiles.size(), kHeights.size());
  for (std::size_t i = 0; i < kHeights.size(); ++i) {
    EXPECT_EQ(kSm100Tiles[i].block_m, kHeights[i]);
    if (i < kUpstream.size()) {
      EXPECT_EQ(kSm100Tiles[i].up_to_rows_per_expert, kUpstream[i]);
    }
  }
}

// The CPU's reason for its thresholds: twice the expected rows fit one block.
TEST(TileRules, CpuTilesHoldTwiceTheirRows) {
  for (std::size_t i = 0; i + 1 < kCpuTiles.size(); ++i)
    EXPECT_EQ(2 * kCpuTiles[i].up_to_rows_per_expert, kCpuTiles[i].block_m);
}

TEST(ChannelRules, EveryCpuRowFiresAndAFewWorkersGetWideBlocks) {
  // One expert, I 2048: 4096 gate and up rows, 16, 32 or 64 blocks for the workers to share.
  const Problem problem = {.hidden = 1024, .intermediate = 2048, .capacity = 16};
  const auto width = [&](int workers) {
    return choose_plan(problem, cpu(workers), {.expected_tokens = 1}).kernel.linear1_block_n;
  };
  EXPECT_EQ(width(1), 128);  // 32 blocks; 256 wide there would be 16
  EXPECT_EQ(width(2), 64);
  EXPECT_EQ(width(1000), 64);
  const Problem wide = {
      .experts = 8, .topk = 8, .hidden = 1024, .intermediate = 2048, .capacity = 1};
  const Plan plenty = choose_plan(wide, cpu(2));
  EXPECT_EQ(plenty.kernel.linear1_block_n, 256);  // 8 experts x 16 blocks / 2
  EXPECT_TRUE(contains(why_of(plenty, "block_n"), kCpuChannels[0].why));
  EXPECT_EQ(choose_plan(wide, cpu(3)).kernel.linear1_block_n, 128);
}

void expect_a_pipeline(const TileRule& tile, const Limits& limits, int experts) {
  SCOPED_TRACE(testing::Message() << name(limits.machine) << ", block_m " << tile.block_m
                                  << ", experts " << experts);
  Limits only = limits;
  only.tiles = {&tile, 1};
  const Problem problem = {.experts = experts, .hidden = 4096, .intermediate = 2048};
  const KernelPlan kernel = choose_plan(problem, only).kernel;
  EXPECT_EQ(kernel.block_m, tile.block_m);
  EXPECT_EQ(what_is_wrong(kernel), "");
  EXPECT_GE(kernel.stages, 3) << "fewer stages than a load's latency needs";
  EXPECT_LE(kernel.shared_bytes, limits.shared_bytes);
  if (limits.machine == MachineKind::kSm100) {
    // Warpgroups of the epilogue take equal shares in whole steps of store_m.
    EXPECT_EQ(kernel.block_m % (kernel.math_warps / 4 * kernel.store_m), 0);
  }
}

// Structural: every height's pipeline fits, for the largest number of experts too.
TEST(PipelineRules, EveryRowFitsTheMachine) {
  for (const MachineKind machine : {MachineKind::kSm90, MachineKind::kSm100}) {
    const Limits limits = usual_limits(machine);
    for (const TileRule& tile : limits.tiles)
      for (const int experts : {1, 128, kMaxExperts})
        expect_a_pipeline(tile, limits, experts);
  }
}

TEST(Ladder, RefusesTablesThatAreOutOfOrder) {
  constexpr std::array kUnordered = {TileRule{8.0, 32, "a"}, TileRule{kAnyRows, 16, "b"}};
  constexpr std::array kOpen = {TileRule{8.0, 16, "a"}};
  constexpr std::array kNoReason = {TileRule{kAnyRows, 16, ""}};
  constexpr std::array kOddHeight = {TileRule{kAnyRows, 20, "a"}};
  EXPECT_FALSE(is_ladder(kUnordered));
  EXPECT_FALSE(is_ladder(kOpen));
  EXPECT_FALSE(is_ladder(kNoReason));
  EXPECT_FALSE(is_ladder(kOddHeight));
}

TEST(Checked, NamesWhatCannotBeBuilt) {
  const KernelPlan good = choose_plan(flash(8, 512), sm100_limits(148)).kernel;
  EXPECT_EQ(checked(good), good);
  const auto reason = [&](auto change) {
    KernelPlan k = good;
    change(k);
    return error_of([&] { checked(k); });
  };
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.block_m = 100; }), "block_m"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.block_m = 24; }), "multiples of 16"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.linear1_block_n = 96; }), "linear1_block_n"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.linear1_block_n = 256; }), "128 weight rows"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.linear2_block_n = 40; }), "linear2_block_n"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.block_k = 64; }), "block_k"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.stages = 1; }), "a pipeline needs two"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.stages = 33; }), "more than 32"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.dispatch_warps = 0; }), "dispatch_warps"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.math_warps = 6; }), "math_warps"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.math_warps = 28; }), "at most 1024"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.shared_bytes = 227 * 1024 + 1; }), "227 KiB"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.tmem_columns = 384; }), "power of two"));
  EXPECT_TRUE(contains(reason([](KernelPlan& k) { k.tmem_columns = 64; }), "tmem_columns"));
  EXPECT_NE(what_is_wrong({.block_m = 16, .stages = 2}), "") << "a CPU has no stages";
}

}  // namespace
}  // namespace megamoe::test
