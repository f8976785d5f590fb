// What plans say of shared memory and tensor memory.
#include <gtest/gtest.h>

#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

// What a plan says of Blackwell is what its kernels are built with: the shares of shared memory add
// up to all of it, and the columns of tensor memory hold two accumulators and the scales.
TEST(Sm100SharedMemory, IsThatOfTheKernels) {
  constexpr std::array kColumns = {64, 128, 256, 256, 512, 512};
  ASSERT_EQ(kColumns.size(), kSm100Tiles.size());
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    SCOPED_TRACE(kSm100Tiles[i].block_m);
    Limits limits = sm100_limits(148);
    limits.tiles = {&kSm100Tiles[i], 1};
    const Plan plan = choose_plan(pro(8, 8192), limits);
    std::uint64_t itemised = 0;
    for (const PlanItem& item : plan.shared_items)
      itemised += item.bytes;
    EXPECT_EQ(itemised, static_cast<std::uint64_t>(plan.kernel.shared_bytes));
    EXPECT_LE(plan.kernel.shared_bytes, 227 * 1024);
    EXPECT_GE(plan.kernel.stages, 4);
    EXPECT_EQ(plan.kernel.tmem_columns, kColumns[i]);
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

}  // namespace
}  // namespace megamoe::test
