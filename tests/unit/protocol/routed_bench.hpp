#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "protocol/barriers.hpp"
#include "protocol/route.hpp"
#include "sim/bench.hpp"
#include "sim/expectation.hpp"

namespace megamoe {

/// Widths and teams that every step of the protocol is tested with.
template <int kLanes>
using TestTeam = sim::Team<kLanes, 2>;
using TestTeams = testing::Types<TestTeam<1>, TestTeam<3>, TestTeam<32>>;

inline sim::Scenario routed_scenario(std::uint64_t seed) {
  return sim::random_scenario(seed, {.ranks = 4, .capacity = 30, .calls = 1}, {});
}

inline std::vector<int> all_ranks(const sim::Scenario& scenario) {
  std::vector<int> ranks;
  for (int rank = 0; rank < scenario.problem.ranks; ++rank)
    ranks.push_back(rank);
  return ranks;
}

/// Steps 1 to 3, by each rank's crew.
template <class M>
void route_pairs(sim::Bench<M>& bench, const sim::Crew& crew) {
  const auto result = bench.run(crew, 1, [](M& m, const Call& call) { route(m, call); });
  ASSERT_TRUE(result.is_clean()) << result.failure;
}

/// Step 4, by all leaders, then what they do behind barrier 1.
template <class M>
void publish_all(sim::Bench<M>& bench, const std::vector<int>& ranks) {
  const auto published =
      bench.run({.ranks = ranks}, 2, [](M& m, const Call& call) { publish_counts(m, call); });
  ASSERT_TRUE(published.is_clean()) << published.failure;
  const auto concluded =
      bench.run({.ranks = ranks}, 3, [](M& m, const Call& call) { conclude_routing(m, call); });
  ASSERT_TRUE(concluded.is_clean()) << concluded.failure;
}

}  // namespace megamoe
