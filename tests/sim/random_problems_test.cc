#include <gtest/gtest.h>

#include "sim/simulate.hpp"

// Every call of every rank, on a random problem in a random interleaving. The oracle looks at every
// verb: each (token, k) is pulled once, in the order of the schedule, into a place that is free; no
// counter exceeds what happened; nothing is read before it arrived or after it was given up; what
// comes back to zero does so in time; y is the ordered sum of the right rows. Where the machine
// settles rows, each is settled once, after linear 1 and before linear 2. No wait is ended by the
// clock: nothing deadlocks.

namespace megamoe::sim {
namespace {

constexpr Style kStyles[] = {Style::kUniform, Style::kSticky, Style::kPriority};

Outcome run(const Scenario& scenario) {
  const std::uint64_t seed = scenario.seed;
  return simulate(
      scenario,
      {.scheduler = {.seed = seed, .style = kStyles[seed % 3]}, .delays_writes = seed % 5 != 0});
}

struct Seeds {
  std::uint64_t first;
  int count;
};

void run_all(const Seeds& seeds, const Layout& layout, const Extent& extent) {
  for (int i = 0; i < seeds.count && !testing::Test::HasFailure(); ++i) {
    const Scenario scenario =
        random_scenario(seeds.first + static_cast<std::uint64_t>(i), extent, layout);
    const Outcome outcome = run(scenario);
    EXPECT_TRUE(outcome.is_clean(scenario)) << scenario.describe() << '\n' << outcome.describe();
  }
}

TEST(RandomProblems, OneLane) {
  run_all({1, 400}, kLayouts[0], {});
}

TEST(RandomProblems, PullsInFlightAndTwoDispatchTeams) {
  run_all({1001, 300}, kLayouts[1], {});
}

TEST(RandomProblems, ThreeLanesAndTwoTeamsOfEachRole) {
  run_all({2001, 200}, kLayouts[2], {.capacity = 12});
}

TEST(RandomProblems, ThirtyTwoLanes) {
  run_all({3001, 40}, kLayouts[3], {.ranks = 3, .capacity = 8, .workers = 2, .calls = 2});
}

TEST(RandomProblems, OneLaneThatSettles) {
  run_all({5001, 400}, settling(kLayouts[0]), {});
}

TEST(RandomProblems, TwoDispatchTeamsThatSettle) {
  run_all({6001, 300}, settling(kLayouts[1]), {});
}

TEST(RandomProblems, ThreeLanesThatSettle) {
  run_all({7001, 150}, settling(kLayouts[2]), {.capacity = 12});
}

TEST(RandomProblems, ThirtyTwoLanesThatSettle) {
  run_all({8001, 30}, settling(kLayouts[3]), {.ranks = 3, .capacity = 8, .workers = 2, .calls = 2});
}

/// Several counting workers a rank need more pairs than the other tests have.
TEST(RandomProblems, ManyTokensAndWorkers) {
  run_all({4001, 6}, kLayouts[1], {.ranks = 3, .capacity = 400, .workers = 6, .calls = 2});
}

class WorstSkew : public testing::TestWithParam<int> {};

const Layout kSkewLayouts[] = {
    kLayouts[0], kLayouts[1], settling(kLayouts[0]), settling(kLayouts[1])};

/// 1,152 rows for one expert through the least ring, with one worker a rank.
TEST_P(WorstSkew, GoesThroughTheLeastRing) {
  for (const Layout& layout : kSkewLayouts) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Scenario scenario = worst_skew(seed, GetParam(), layout);
      const Outcome outcome = run(scenario);
      EXPECT_TRUE(outcome.is_clean(scenario)) << scenario.describe() << '\n' << outcome.describe();
    }
  }
}

/// The same through a ring of one block, less than a plan may have: every wave is a block, ends
/// inside the expert, and waits for the one before.
TEST_P(WorstSkew, GoesThroughARingOfOneBlock) {
  for (const Layout& layout : kSkewLayouts) {
    Scenario scenario = worst_skew(4, GetParam(), layout);
    for (RankInput& input : scenario.calls.front())
      input.ring.blocks = 1;
    const Outcome outcome = run(scenario);
    EXPECT_TRUE(outcome.is_clean(scenario)) << scenario.describe() << '\n' << outcome.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(BlockM, WorstSkew, testing::Values(8, 16, 32, 64, 96, 128, 192));

}  // namespace
}  // namespace megamoe::sim
