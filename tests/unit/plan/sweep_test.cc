// Host-only sweep over shapes, ranks and loads on every machine: each plan is one that can run, or
// an error that names a bound.
#include <gtest/gtest.h>

#include <random>

#include "plan/checked.hpp"
#include "plan_cases.hpp"

namespace megamoe::test {
namespace {

constexpr std::array kWidths = {32,   64,   96,   512,  768,  1024, 1408, 1536, 2048, 2176,
                                2304, 2432, 2880, 3072, 3584, 4096, 5120, 6144, 7168, 8192};
constexpr std::array kExperts = {
    1, 2, 6, 8, 16, 64, 72, 128, 256, 288, 384, 432, 512, 896, 1008, 1024};
constexpr std::array kTopks = {1, 2, 4, 5, 6, 8, 10, 16, 32};
constexpr std::array kRanks = {1, 2, 3, 4, 8, 16, 32, 64, 72};
constexpr std::array kTokens = {
    0, 1, 2, 3, 7, 16, 17, 31, 64, 65, 127, 128, 384, 385, 1024, 8192, 65'536};
constexpr std::array kWorkers = {2, 3, 16, 78, 80, 114, 132, 148, 152, 160};

void expect_runnable(const Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  const KernelPlan& k = plan.kernel;
  EXPECT_EQ(what_is_wrong(k), "");
  EXPECT_LE(plan.symmetric_bytes, plan.symmetric_budget);
  std::uint64_t bytes = 0;
  for (const PlanItem& item : plan.symmetric_items)
    bytes += item.bytes;
  EXPECT_EQ(bytes, plan.symmetric_bytes);

  EXPECT_EQ(plan.pool_rows % 384, 0);
  EXPECT_GE(plan.pool_rows, 384);
  EXPECT_LE(plan.pool_rows, plan.full_pool_rows);
  const Ring ring = ring_of(plan);
  const std::int64_t idle = plan.pool_rows - std::int64_t{ring.blocks} * ring.block_m;
  EXPECT_TRUE(0 <= idle && idle < ring.block_m);

  // Blocks cover the padded rows; the last (on SM100 the last pair) has real ones.
  const int together = limits.machine == MachineKind::kSm100 ? 2 : 1;
  EXPECT_GE(plan.padded_hidden, p.hidden);
  EXPECT_GE(plan.padded_intermediate, p.intermediate);
  EXPECT_GE(plan.linear1_blocks * k.linear1_block_n, 2 * plan.padded_intermediate);
  EXPECT_LT((plan.linear1_blocks - together) * k.linear1_block_n, 2 * p.intermediate);
  EXPECT_GE(plan.linear2_blocks * k.linear2_block_n, plan.padded_hidden);
  EXPECT_LT((plan.linear2_blocks - together) * k.linear2_block_n, p.hidden);

  EXPECT_GE(plan.experts_per_wave, 1);
  EXPECT_LE(plan.experts_per_wave, p.experts_per_rank());
  EXPECT_LE(plan.experts_per_wave, ring.blocks);
  EXPECT_EQ(plan.workers, limits.workers);
  EXPECT_LE(k.shared_bytes, limits.shared_bytes);
  EXPECT_LE(k.tmem_columns, 512);
  if (limits.machine == MachineKind::kSm100) {
    EXPECT_EQ(plan.workers % 2, 0);
    EXPECT_EQ(plan.linear1_blocks % 2, 0) << "a pair of CTAs takes two blocks";
    EXPECT_EQ(plan.linear2_blocks % 2, 0) << "a pair of CTAs takes two blocks";
  }
}

Limits limits_of(MachineKind machine, int workers) {
  if (machine == MachineKind::kCpu) return cpu(workers);
  return machine == MachineKind::kSm90 ? sm90_limits(workers) : sm100_limits(workers);
}

struct Tally {
  int plans = 0;
  int refusals = 0;
};

void try_plan(const Problem& problem, const Limits& limits, int tokens, Tally& tally) {
  SCOPED_TRACE(testing::Message() << name(limits.machine) << " with " << limits.workers
                                  << " workers, H " << problem.hidden << ", I "
                                  << problem.intermediate << ", E " << problem.experts << ", K "
                                  << problem.topk << ", R " << problem.ranks << ", C "
                                  << problem.capacity << ", T " << tokens);
  try {
    const Plan plan = choose_plan(problem, limits, {.expected_tokens = tokens});
    expect_runnable(plan, limits);
    ++tally.plans;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(contains(error.what(), "the budget is")) << error.what();
    EXPECT_NE(limits.machine, MachineKind::kCpu) << "a CPU without a budget takes every shape";
    ++tally.refusals;
  }
}

TEST(Sweep, EveryWidthWithEveryWidth) {
  Tally tally;
  for (const int hidden : kWidths)
    for (const int intermediate : kWidths)
      for (const MachineKind machine : kMachines)
        for (const int tokens : {1, 512}) {
          const Problem problem = {.ranks = 8,
                                   .experts = 256,
                                   .topk = 8,
                                   .hidden = hidden,
                                   .intermediate = intermediate,
                                   .capacity = tokens};
          try_plan(problem, usual_limits(machine), tokens, tally);
        }
  EXPECT_EQ(tally.refusals, 0) << "all of these fit every machine";
}

TEST(Sweep, RandomShapesRanksLoadsAndWorkers) {
  constexpr unsigned kSeed = 20'240'917;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto any = [&](const auto& from) { return from[random() % from.size()]; };
  Tally tally;
  for (int i = 0; i < 6000; ++i) {
    Problem problem = {.ranks = any(kRanks),
                       .experts = any(kExperts),
                       .topk = any(kTopks),
                       .hidden = any(kWidths),
                       .intermediate = any(kWidths)};
    if (problem.experts % problem.ranks != 0) problem.ranks = 1;
    const int tokens = any(kTokens);
    problem.capacity = std::max(any(kTokens), std::max(tokens, 1));
    try_plan(problem, limits_of(any(kMachines), any(kWorkers)), tokens, tally);
  }
  EXPECT_GT(tally.plans, 5500);
}

}  // namespace
}  // namespace megamoe::test
