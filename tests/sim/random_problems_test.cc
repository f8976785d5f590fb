#include <gtest/gtest.h>

#include "sim/simulate.hpp"

namespace megamoe::sim {
namespace {

constexpr Style kStyles[] = {Style::kUniform, Style::kSticky, Style::kPriority};

/// One seed: a random scenario in a random interleaving. The oracle has looked at every verb.
void run_seed(std::uint64_t seed, const Layout& layout, const Extent& extent) {
  const Scenario scenario = random_scenario(seed, extent, layout);
  SCOPED_TRACE(scenario.describe());
  const SimulationOptions options{.scheduler = {.seed = seed, .style = kStyles[seed % 3]},
                                  .delays_writes = seed % 5 != 0};
  const Outcome outcome = simulate(scenario, options);
  EXPECT_TRUE(outcome.is_clean(scenario)) << outcome.describe();
}

TEST(RandomProblems, OneLane) {
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed)
    run_seed(seed, kLayouts[0], {});
}

TEST(RandomProblems, PullsInFlightAndTwoDispatchTeams) {
  for (std::uint64_t seed = 1001; seed <= 1200 && !HasFailure(); ++seed)
    run_seed(seed, kLayouts[1], {});
}

TEST(RandomProblems, ThreeLanesAndTwoTeamsOfEachRole) {
  for (std::uint64_t seed = 2001; seed <= 2100 && !HasFailure(); ++seed)
    run_seed(seed, kLayouts[2], {.capacity = 12});
}

TEST(RandomProblems, ThirtyTwoLanes) {
  for (std::uint64_t seed = 3001; seed <= 3020 && !HasFailure(); ++seed)
    run_seed(seed, kLayouts[3], {.ranks = 3, .capacity = 8, .workers = 2, .calls = 2});
}

}  // namespace
}  // namespace megamoe::sim
