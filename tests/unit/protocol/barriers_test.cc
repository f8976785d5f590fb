#include "protocol/barriers.hpp"

#include <gtest/gtest.h>

#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Scenario;

Scenario ranks_without_tokens(int ranks) {
  Scenario scenario;
  scenario.problem.ranks = ranks;
  scenario.problem.experts = ranks;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(static_cast<std::size_t>(ranks))};
  return scenario;
}

template <class M>
class BarriersOn : public testing::Test {};
TYPED_TEST_SUITE(BarriersOn, TestTeams);

/// More ranks than lanes, several workers: nobody passes before all have arrived.
TYPED_TEST(BarriersOn, NobodyPassesBeforeAllArrived) {
  constexpr int kRanks = 7;
  constexpr int kWorkers = 2;
  const Scenario scenario = ranks_without_tokens(kRanks);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bench<TypeParam> bench(scenario);
    int arrived = 0;
    const auto body = [&](TypeParam& m, const Call& call) {
      for (int barrier = 1; barrier <= 3; ++barrier) {
        ++arrived;
        arrive(m, call);
        if (m.worker() == 0) {
          EXPECT_TRUE(wait_for_workers(m, call, barrier));
          EXPECT_TRUE(meet_ranks(m, call, barrier));
          open_gate(m, call);
        }
        EXPECT_TRUE(wait_at_gate(m, call, barrier));
        EXPECT_GE(arrived, barrier * kRanks * kWorkers * TypeParam::kLanes);
      }
    };
    const auto result = bench.run({.ranks = all_ranks(scenario), .workers = kWorkers}, seed, body);
    EXPECT_TRUE(result.is_clean()) << result.failure;
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(bench.call(rank).local(bench.call(rank).workspace.gate)->value, 3U);
  }
}

/// The one that waits in vain says for which rank; each lane watches ranks of its own.
TYPED_TEST(BarriersOn, TheMissingRankIsNamed) {
  constexpr int kRanks = 7;
  const Scenario scenario = ranks_without_tokens(kRanks);
  for (int missing = 0; missing < kRanks; ++missing) {
    Bench<TypeParam> bench(scenario);
    std::vector<int> others;
    for (int rank = 0; rank < kRanks; ++rank)
      if (rank != missing) others.push_back(rank);
    int passed = 0;
    const auto result = bench.run({.ranks = others}, 1, [&](TypeParam& m, const Call& call) {
      passed += meet_ranks(m, call, 1) ? 1 : 0;
    });
    EXPECT_EQ(result.ending, sim::Scheduler::Ending::kDone);
    EXPECT_EQ(passed, 0);
    ASSERT_FALSE(result.departures.empty());
    const sim::Departure& first = result.departures.front();
    EXPECT_EQ(first.wait.what, WaitFor::kRank);
    EXPECT_EQ(first.wait.awaited_rank, missing);
    EXPECT_EQ(first.observation.seen, 0U);
    EXPECT_EQ(first.observation.expected, 1U);
    for (const int rank : others)
      EXPECT_EQ(Abort::of(bench.call(rank).local(bench.call(rank).workspace.abort)->value).reason,
                AbortReason::kExpired);
  }
}

/// Both parts of a call: the waiter goes on only when every team has joined.
TYPED_TEST(BarriersOn, RolesJoinTwice) {
  constexpr int kTeams = 3;
  const Scenario scenario = ranks_without_tokens(1);
  Bench<TypeParam> bench(scenario);
  int joined = 0;
  const auto result = bench.run({.teams = kTeams}, 4, [&](TypeParam& m, const Call&) {
    for (int part = 1; part <= 2; ++part) {
      ++joined;
      join_roles(m);
      EXPECT_TRUE(wait_for_roles(m, part));
      EXPECT_GE(joined, part * kTeams * TypeParam::kLanes);
    }
  });
  EXPECT_TRUE(result.is_clean()) << result.failure;
}

}  // namespace
}  // namespace megamoe
