#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <tuple>

#include "conformance/verbs.hpp"

namespace megamoe::conformance {
namespace {

template <class F>
class TeamVerbs : public Verbs<F> {};
TYPED_TEST_SUITE(TeamVerbs, Machines);

TYPED_TEST(TeamVerbs, EveryLaneHasAPositionOfItsOwn) {
  using M = typename TypeParam::M;
  this->repeat([&](TypeParam& machine) {
    std::mutex mutex;
    std::set<std::tuple<int, int, int, int>> positions;
    machine.run(this->everyone(), [&](M& m, const Call& call) {
      EXPECT_EQ(m.rank(), call.peers.rank);
      EXPECT_EQ(m.num_workers(), kWorkers);
      EXPECT_EQ(m.num_teams(), TypeParam::kMostTeams);
      EXPECT_GE(m.teams_of_worker(), m.num_teams());
      EXPECT_EQ(m.first_epoch(), machine.first_epoch(m.rank()));
      EXPECT_TRUE(m.worker() >= 0 && m.worker() < kWorkers);
      EXPECT_TRUE(m.team() >= 0 && m.team() < m.num_teams());
      EXPECT_TRUE(m.lane() >= 0 && m.lane() < M::kLanes);
      const std::lock_guard lock(mutex);
      positions.insert({m.rank(), m.worker(), m.team(), m.lane()});
    });
    EXPECT_EQ(positions.size(),
              static_cast<std::size_t>(kRanks * kWorkers * TypeParam::kMostTeams * M::kLanes));
  });
}

TYPED_TEST(TeamVerbs, LanesReduceAndVote) {
  using M = typename TypeParam::M;
  constexpr int kLanes = M::kLanes;
  this->repeat([&](TypeParam& machine) {
    machine.run(this->everyone(), [](M& m, const Call&) {
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(m.reduce_add(m.lane() + round), kLanes * (kLanes - 1) / 2 + round * kLanes);
        EXPECT_EQ(m.reduce_add(-5), -5 * kLanes);
        EXPECT_EQ(m.reduce_min(100 - m.lane()), 101 - kLanes);
        EXPECT_EQ(m.reduce_min(m.lane() - 7), -7);
        EXPECT_EQ(m.reduce_min(0x7FFFFFFF), 0x7FFFFFFF);
      }
      EXPECT_EQ(m.ballot(true), static_cast<std::uint32_t>((std::uint64_t{1} << kLanes) - 1));
      EXPECT_EQ(m.ballot(false), 0U);
      EXPECT_TRUE(m.all(true));
      for (int dissenter = 0; dissenter < kLanes; ++dissenter) {
        EXPECT_EQ(m.ballot(m.lane() == dissenter), std::uint32_t{1} << dissenter);
        EXPECT_FALSE(m.all(m.lane() != dissenter));
      }
    });
  });
}

TYPED_TEST(TeamVerbs, ATeamSeesItsWritesBehindASync) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    machine.run({}, [](M& m, const Call& call) {
      std::uint32_t* counts = m.role_counts();
      for (std::uint32_t round = 1; round <= 3; ++round) {
        for (int e = m.lane(); e < call.problem.experts; e += M::kLanes)
          counts[e] = round * 100 + static_cast<std::uint32_t>(e);
        m.sync_team();
        for (int e = 0; e < call.problem.experts; ++e)
          EXPECT_EQ(counts[e], round * 100 + static_cast<std::uint32_t>(e));
        m.sync_team();
      }
    });
  });
}

/// Zero at the start; the slots that lanes of several teams take are all different; no other worker
/// shares them.
TYPED_TEST(TeamVerbs, TheTeamsOfARoleShareItsCounts) {
  using M = typename TypeParam::M;
  this->repeat([&](TypeParam& machine) {
    std::mutex mutex;
    std::multiset<std::tuple<int, int, std::uint32_t>> slots;
    machine.run(this->everyone(), [&](M& m, const Call& call) {
      for (int e = 0; e < call.problem.experts; ++e)
        EXPECT_EQ(m.role_counts()[e], 0U);
      EXPECT_EQ(m.roles_joined()->value, 0U);
      m.sync_role();
      const std::uint32_t old = m.claim_slot(2, 3U);
      {
        const std::lock_guard lock(mutex);
        slots.insert({m.rank(), m.worker(), old});
      }
      m.sync_role();
      EXPECT_EQ(m.role_counts()[2], static_cast<std::uint32_t>(3 * m.num_teams() * M::kLanes));
      EXPECT_EQ(m.role_counts()[1], 0U);
    });
    std::set<std::tuple<int, int, std::uint32_t>> expected;
    for (int rank = 0; rank < kRanks; ++rank)
      for (int worker = 0; worker < kWorkers; ++worker)
        for (int lane = 0; lane < M::kLanes * TypeParam::kMostTeams; ++lane)
          expected.insert({rank, worker, static_cast<std::uint32_t>(3 * lane)});
    EXPECT_TRUE(std::equal(slots.begin(), slots.end(), expected.begin(), expected.end()));
  });
}

}  // namespace
}  // namespace megamoe::conformance
