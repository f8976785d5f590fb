// Experts per wave: enough for all workers, no more than that, even, and within the ring.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan_cases.hpp"
#include "protocol/schedule.hpp"

namespace megamoe::test {
namespace {

// What Schedule asks in a balanced routing.
struct EqualRows {
  int rows;

  int operator()(int /*expert*/) const { return rows; }
};

int wave(const Problem& problem, const Limits& limits, int tokens) {
  return choose_plan(problem, limits, {.expected_tokens = tokens}).experts_per_wave;
}

// Figures of the public original at 148 SMs and 8 ranks, where ours agree with it: it, too, evens
// out, but only among divisors.
TEST(Wave, AgreesWithThePublicOriginalWhereItIsEven) {
  Limits limits = sm100_limits(148);
  limits.pool_bytes = kNoBudget;
  const Problem layer = pro(8, 32'768);
  for (const int tokens : {8, 64, 128, 256, 512, 1024})
    EXPECT_EQ(wave(layer, limits, tokens), 8) << tokens;
  EXPECT_EQ(wave(layer, limits, 2048), 4);
  EXPECT_EQ(wave(layer, limits, 4096), 3);
  EXPECT_EQ(wave(layer, limits, 8192), 2);
  EXPECT_EQ(wave(layer, limits, 32'768), 1);
}

TEST(Wave, IsTheFewestThatKeepAllWorkersBusyAndEven) {
  for (const MachineKind machine : kMachines)
    for (const int workers : {1, 2, 3, 7, 16, 64, 132, 160})
      for (const int tokens : {0, 1, 8, 100, 1000, 8192}) {
        Limits limits = usual_limits(machine);
        limits.workers = workers;
        limits.pool_bytes = kNoBudget;
        const Problem layer = pro(8, 8192);
        const Plan plan = choose_plan(layer, limits, {.expected_tokens = tokens});
        SCOPED_TRACE(testing::Message() << name(machine) << ' ' << workers << ' ' << tokens);
        const int experts = layer.experts_per_rank();
        const int rows = std::max(static_cast<int>(std::ceil(plan.expected_rows)), 1);
        const int blocks = ceil_div(rows, plan.kernel.block_m) * plan.linear1_blocks;
        ASSERT_GE(plan.experts_per_wave, 1);
        ASSERT_LE(plan.experts_per_wave, experts);
        if (plan.experts_per_wave < experts) {
          EXPECT_GE(plan.experts_per_wave * blocks, kImbalance * workers);
        }
        // No wave fewer could be had by making them larger only: waves differ by their share at
        // most.
        const int waves = ceil_div(experts, plan.experts_per_wave);
        EXPECT_EQ(plan.experts_per_wave, ceil_div(experts, waves));
      }
}

TEST(Wave, NeverHoldsMoreThanTheRing) {
  const Problem layer = pro(8, 8192);
  for (const MachineKind machine : kMachines) {
    const Plan plan =
        choose_plan(layer, usual_limits(machine), {.expected_tokens = 32, .pool_rows = 384});
    const Ring ring = ring_of(plan);
    EXPECT_EQ(ring.blocks * ring.block_m, 384);
    EXPECT_LE(plan.experts_per_wave, ring.blocks);
  }
  const Plan least =
      choose_plan(layer, sm90_limits(132), {.expected_tokens = 8192, .pool_rows = 384});
  EXPECT_EQ(ring_of(least).blocks, 2);
  EXPECT_EQ(least.experts_per_wave, 1) << "two blocks hold less than one expert's";
  EXPECT_TRUE(contains(why_of(least, "experts_per_wave"), "all that the ring holds"));
}

// With one block an expert, linear 2 of a lone expert would wait for its last linear 1 block.
TEST(Wave, OfOneBlockEachHasTwoExperts) {
  const Problem layer = {
      .experts = 32, .topk = 6, .hidden = 4096, .intermediate = 2048, .capacity = 32};
  EXPECT_EQ(wave(layer, cpu(2), 32), 2);
  const Problem lone = {.experts = 1, .hidden = 4096, .intermediate = 2048, .capacity = 32};
  EXPECT_EQ(wave(lone, cpu(2), 32), 1);
}

// The plan's estimate against the protocol's own schedule: in its balanced routing, every worker
// gets a linear 1 block of the first wave before the first linear 2 block is due.
TEST(Wave, KeepsEveryWorkerOfTheScheduleBusyInLinear1) {
  for (const MachineKind machine : kMachines)
    for (const int tokens : {64, 512, 4096}) {
      SCOPED_TRACE(testing::Message() << name(machine) << ' ' << tokens);
      const Plan plan =
          choose_plan(pro(8, 8192), usual_limits(machine), {.expected_tokens = tokens});
      const EqualRows rows_of{static_cast<int>(std::ceil(plan.expected_rows))};
      for (int worker = 0; worker < plan.workers; ++worker) {
        Schedule<EqualRows> schedule({.ring = ring_of(plan),
                                      .experts = plan.problem.experts_per_rank(),
                                      .experts_per_wave = plan.experts_per_wave,
                                      .worker = worker,
                                      .num_workers = plan.workers},
                                     rows_of);
        Block block;
        ASSERT_TRUE(schedule.next(block));
        EXPECT_EQ(block.phase, Phase::kLinear1) << "worker " << worker;
      }
    }
}

}  // namespace
}  // namespace megamoe::test
