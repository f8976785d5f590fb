// The pool's rows: by the budget, by the caller, never too few to work; and the items' sum.
#include "plan/pool_size.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

std::uint64_t sum(const std::vector<PlanItem>& items) {
  return std::accumulate(
      items.begin(), items.end(), std::uint64_t{0}, [](std::uint64_t total, const PlanItem& item) {
        return total + item.bytes;
      });
}

std::uint64_t bytes_of(const Plan& plan, std::string_view item) {
  for (const PlanItem& each : plan.symmetric_items)
    if (each.name == item) return each.bytes;
  ADD_FAILURE() << "no item " << item;
  return 0;
}

TEST(PoolSize, ItemsAreNamedOnceAndSumUp) {
  for (const MachineKind machine : kMachines) {
    const Plan plan = choose_plan(pro(8, 512), usual_limits(machine));
    EXPECT_EQ(sum(plan.symmetric_items), plan.symmetric_bytes);
    std::set<std::string_view> names;
    for (const PlanItem& item : plan.symmetric_items)
      names.insert(item.name);
    EXPECT_EQ(names.size(), plan.symmetric_items.size());
  }
}

// By hand, of flash with 4 ranks and 512 tokens: what depends on no machine.
TEST(PoolSize, ItemsAreWhatTheyAreNamedAfter) {
  const Plan plan = choose_plan(flash(4, 512), cpu(4), {.pool_rows = 384});
  EXPECT_EQ(bytes_of(plan, "tokens"), 512 * 4096);
  EXPECT_EQ(bytes_of(plan, "token_scales"), 512 * 128);
  EXPECT_EQ(bytes_of(plan, "topk_weights"), 512 * 6 * 4);
  EXPECT_EQ(bytes_of(plan, "topk_ids"), 512 * 6 * 8);
  EXPECT_EQ(bytes_of(plan, "source"), 256 * 512 * 6 * 4);
  EXPECT_EQ(bytes_of(plan, "combine"), 512 * 6 * 4096 * 2);
  // Three counters of 48 blocks, each from the start of a 128-byte line on.
  EXPECT_EQ(bytes_of(plan, "ring"), 3 * 256);
  EXPECT_EQ(bytes_of(plan, "row_source"), 384 * 8);
  EXPECT_EQ(bytes_of(plan, "row_weight"), 384 * 4);
  EXPECT_EQ(bytes_of(plan, "linear1_rows"), 384 * cpu::row_bytes(4096));
  EXPECT_EQ(bytes_of(plan, "linear1_scales"), 0U);
  EXPECT_EQ(bytes_of(plan, "linear2_rows"), 384 * cpu::row_bytes(2048));
  EXPECT_EQ(bytes_of(plan, "linear2_scales"), 0U);
  EXPECT_LT(bytes_of(plan, "page_rounding"), 4096U);
  EXPECT_EQ(plan.symmetric_bytes % 4096, 0U);
}

TEST(PoolSize, IsTheFullPoolWhereThatIsSmall) {
  const Plan plan = choose_plan(flash(8, 32), cpu(4));
  EXPECT_EQ(plan.pool_rows, plan.full_pool_rows);
  EXPECT_EQ(plan.full_pool_rows, align_up(8 * 32 * 6 + 32 * 191, 384));
  EXPECT_TRUE(contains(why_of(plan, "pool_rows"), "the full pool"));
}

// Without a budget, memory stays small where the worst routing would need gigabytes.
TEST(PoolSize, IsWorthSoManyBytesUnlessTheCallerHasABudget) {
  for (const MachineKind machine : kMachines) {
    const Limits limits = usual_limits(machine);
    const Plan plan = choose_plan(pro(8, 8192), limits);
    EXPECT_LT(plan.pool_rows, plan.full_pool_rows);
    const Plan least = choose_plan(pro(8, 8192), limits, {.pool_rows = 384});
    EXPECT_LE(plan.symmetric_bytes - least.symmetric_bytes, limits.pool_bytes);
    const Plan generous = choose_plan(pro(8, 8192), limits, {.byte_budget = 60ULL << 30});
    EXPECT_EQ(generous.pool_rows == generous.full_pool_rows,
              machine != MachineKind::kSm90 || generous.symmetric_bytes <= limits.symmetric_bytes);
    EXPECT_LE(generous.symmetric_bytes, limits.symmetric_bytes);
  }
}

TEST(PoolSize, TakesAllThatTheBudgetLeaves) {
  for (const MachineKind machine : kMachines) {
    const Limits limits = usual_limits(machine);
    const Problem problem = flash(8, 4096);
    std::int64_t rows = 0;
    for (std::uint64_t budget = 400ULL << 20; budget < 6ULL << 30; budget += budget / 3) {
      const Plan plan = choose_plan(problem, limits, {.byte_budget = budget});
      EXPECT_LE(plan.symmetric_bytes, budget);
      EXPECT_EQ(plan.pool_rows % 384, 0);
      EXPECT_GE(plan.pool_rows, rows) << "more bytes, fewer rows";
      rows = plan.pool_rows;
      if (rows == plan.full_pool_rows) continue;
      const Plan more = choose_plan(problem, limits, {.pool_rows = rows + 1});
      EXPECT_GT(more.symmetric_bytes, budget) << "384 more rows would have fit";
    }
    EXPECT_GT(rows, 384);
  }
}

TEST(PoolSize, RoundsWhatTheCallerAsksFor) {
  const auto rows = [](std::int64_t asked) {
    return choose_plan(flash(4, 512), cpu(4), {.pool_rows = asked}).pool_rows;
  };
  EXPECT_EQ(rows(1), 384);
  EXPECT_EQ(rows(384), 384);
  EXPECT_EQ(rows(385), 768);
  const std::int64_t full = full_pool_rows(flash(4, 512));
  EXPECT_EQ(rows(full), full);
  EXPECT_EQ(rows(full + 1), full);
  EXPECT_EQ(rows(std::numeric_limits<std::int64_t>::max()), full);
  EXPECT_TRUE(contains(error_of([&] { rows(-1); }), "pool_rows is -1"));
}

TEST(PoolSize, AskingForWhatWasChosenGivesTheSamePlan) {
  for (const MachineKind machine : kMachines) {
    const Limits limits = usual_limits(machine);
    const Plan plan = choose_plan(pro(8, 8192), limits, {.expected_tokens = 32});
    const Plan again =
        choose_plan(pro(8, 8192), limits, {.expected_tokens = 32, .pool_rows = plan.pool_rows});
    EXPECT_EQ(ring_of(again).blocks, ring_of(plan).blocks);
    EXPECT_EQ(again.symmetric_items, plan.symmetric_items);
    EXPECT_EQ(again.experts_per_wave, plan.experts_per_wave);
  }
}

TEST(PoolSize, TheLeastPoolIsFoundToTheByte) {
  const Plan least = choose_plan(flash(4, 512), cpu(4), {.pool_rows = 384});
  const Plan tight = choose_plan(flash(4, 512), cpu(4), {.byte_budget = least.symmetric_bytes});
  EXPECT_EQ(tight.pool_rows, 384);
  const std::string sentence = error_of(
      [&] { choose_plan(flash(4, 512), cpu(4), {.byte_budget = least.symmetric_bytes - 1}); });
  EXPECT_TRUE(contains(sentence, "with a pool of 384 rows")) << sentence;
}

TEST(PoolSize, TooLargeIsAnErrorThatListsTheItems) {
  const auto too_large = [](PlanRequest request) {
    return error_of([&] { choose_plan(flash(4, 512), cpu(4), request); });
  };
  for (const std::string& sentence : {too_large({.byte_budget = 1 << 20}),
                                      too_large({.pool_rows = 3840, .byte_budget = 40 << 20})}) {
    EXPECT_TRUE(contains(sentence, "the budget is")) << sentence;
    EXPECT_TRUE(contains(sentence, "combine 24 MiB")) << sentence;
    EXPECT_TRUE(contains(sentence, "linear1_rows")) << sentence;
    EXPECT_FALSE(contains(sentence, "linear1_scales")) << "items without bytes are left out";
  }
  Limits small = sm90_limits(132);
  small.symmetric_bytes = 16 << 20;
  EXPECT_TRUE(contains(error_of([&] { choose_plan(flash(8, 8192), small); }), "16 MiB"));
}

// The machine's own limit holds whatever the caller asks.
TEST(PoolSize, ACallersBudgetDoesNotLiftTheMachines) {
  Limits limits = cpu(4);
  limits.symmetric_bytes = 64 << 20;
  const Plan plan = choose_plan(flash(4, 512), limits, {.byte_budget = 1ULL << 40});
  EXPECT_EQ(plan.symmetric_budget, limits.symmetric_bytes);
  EXPECT_LE(plan.symmetric_bytes, limits.symmetric_bytes);
}

TEST(PoolSize, GrowsWithTheProblem) {
  for (const MachineKind machine : kMachines) {
    std::uint64_t bytes = 0;
    for (const int capacity : {1, 2, 31, 512, 8192, 65'536}) {
      const Plan plan = choose_plan(flash(8, capacity), usual_limits(machine));
      EXPECT_GE(plan.symmetric_bytes, bytes) << capacity;
      bytes = plan.symmetric_bytes;
    }
  }
}

// The largest of everything: no sum wraps, and what can't be counted or held is refused.
TEST(PoolSize, SurvivesTheLargestProblem) {
  const Problem largest = {.ranks = kMaxRanks,
                           .experts = kMaxRanks * 14,
                           .topk = kMaxTopk,
                           .hidden = kMaxLinearWidth,
                           .intermediate = kMaxLinearWidth,
                           .capacity = kMaxCapacity};
  const std::string refused =
      error_of([&] { choose_plan(largest, cpu(1000), {.expected_tokens = 0}); });
  EXPECT_TRUE(contains(refused, "overflow a counter of 32 bits")) << refused;
  const Plan plan = choose_plan(largest, cpu(1), {.byte_budget = kNoBudget - 1});
  EXPECT_EQ(plan.pool_rows, plan.full_pool_rows);
  EXPECT_EQ(sum(plan.symmetric_items), plan.symmetric_bytes);
  EXPECT_GT(plan.symmetric_bytes, 4ULL << 40);
  EXPECT_EQ(bytes_of(plan, "combine"), std::uint64_t{65'536} * 32 * kMaxLinearWidth * 2);
  for (const MachineKind machine : {MachineKind::kSm90, MachineKind::kSm100})
    EXPECT_TRUE(
        contains(error_of([&] { choose_plan(largest, usual_limits(machine)); }), "the budget is"));
}

}  // namespace
}  // namespace megamoe::test
