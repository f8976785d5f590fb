#include <gtest/gtest.h>

#include "sim/random.hpp"
#include "sim/simulate.hpp"

// A rank that refuses its input keeps all barriers. The oracle holds the call to the rest: the same
// verdict on all ranks, that of the lowest rank; nothing pulled, computed or written to y; clean
// counters; the next call works.

namespace megamoe::sim {
namespace {

/// Three calls, the second one refused by one rank or more.
Scenario refused_scenario(std::uint64_t seed, const Layout& layout) {
  Scenario scenario = random_scenario(seed, {.ranks = 5, .capacity = 12, .calls = 1}, layout);
  const auto ordinary = scenario.calls.front();
  Random random(seed);
  auto refused = ordinary;
  const int refusals = random.between(1, scenario.problem.ranks);
  for (int i = 0; i < refusals; ++i) {
    const int rank = random.between(0, scenario.problem.ranks - 1);
    RankInput& input = refused[static_cast<std::size_t>(rank)];
    if (random.one_in(2)) {
      input.tokens = scenario.problem.capacity + random.between(1, 1000);
      input.ids.resize(static_cast<std::size_t>(scenario.problem.pairs()));
      input.weights.resize(static_cast<std::size_t>(scenario.problem.pairs()));
    } else {
      input.refusal = {RefusalKind::kExpertId, rank, 3, 1, 99};
    }
  }
  scenario.calls = {ordinary, refused, ordinary};
  return scenario;
}

TEST(Refusal, KeepsTheBarriersAndWritesNothing) {
  for (std::uint64_t seed = 1; seed <= 80 && !HasFailure(); ++seed) {
    const Layout layout = kLayouts[seed % 3];
    const Scenario scenario = refused_scenario(seed, seed % 4 == 0 ? settling(layout) : layout);
    const Outcome outcome = simulate(scenario, {.scheduler = {.seed = seed}});
    EXPECT_TRUE(outcome.is_clean(scenario)) << scenario.describe() << '\n' << outcome.describe();
  }
}

}  // namespace
}  // namespace megamoe::sim
