#include "protocol/route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Expectation;
using sim::Scenario;

TEST(CountingWorkers, AreFewForFewPairs) {
  static_assert(counting_workers(0, 132) == 1);
  static_assert(counting_workers(512, 132) == 1);
  static_assert(counting_workers(513, 132) == 2);
  static_assert(counting_workers(1 << 20, 132) == 132);
  static_assert(counting_workers(1 << 20, 1) == 1);
}

/// Places of `source` are disjoint for all (expert, rank, slot), and stay inside.
TEST(SourceIndex, TilesTheArray) {
  Problem p;
  p.ranks = 3;
  p.experts = 6;
  p.topk = 2;
  p.capacity = 4;
  std::set<std::uint64_t> places;
  for (int expert = 0; expert < 2; ++expert)
    for (int rank = 0; rank < 3; ++rank)
      for (std::uint64_t slot = 0; slot < 8; ++slot)
        places.insert(source_index(p, expert, rank, slot));
  EXPECT_EQ(places.size(), 2U * 3 * 8);
  EXPECT_EQ(*places.rbegin(), 2U * 3 * 8 - 1);
}

TEST(SourceIndex, IsExactPast32Bits) {
  Problem p;
  p.ranks = 72;
  p.experts = 1008;
  p.topk = 32;
  p.capacity = 65'536;
  EXPECT_EQ(source_index(p, 13, 71, 2'097'151), (13ULL * 72 + 71) * 2'097'152 + 2'097'151);
}

template <class M>
class RouteOn : public testing::Test {};
TYPED_TEST_SUITE(RouteOn, TestTeams);

/// What the expert's rank finds afterwards: for each source rank the right count, and a list with
/// each of the rank's pairs for this expert once.
void expect_routed(const Call& call, const Scenario& scenario) {
  const Expectation expectation(scenario, 0);
  const Problem& p = scenario.problem;
  const Workspace& w = call.workspace;
  for (int local = 0; local < p.experts_per_rank(); ++local) {
    const int expert = call.peers.rank * p.experts_per_rank() + local;
    const CountAndMarks sum = CountAndMarks::of(call.local(w.received_sum)[local].value);
    EXPECT_EQ(static_cast<int>(sum.count), expectation.rows(expert));
    EXPECT_EQ(static_cast<int>(sum.marks), p.ranks);
    EXPECT_EQ(static_cast<int>(call.local(w.expert_rows)[local]), expectation.rows(expert));
    for (int rank = 0; rank < p.ranks; ++rank) {
      const std::uint32_t count = call.local(w.received)[rank * p.experts_per_rank() + local].value;
      ASSERT_EQ(static_cast<int>(count), expectation.received(expert, rank));
      const std::uint32_t* list = call.local(w.source) + source_index(p, local, rank, 0);
      std::vector<std::uint32_t> pairs(list, list + count);
      std::sort(pairs.begin(), pairs.end());
      std::vector<std::uint32_t> expected;
      const std::vector<std::int64_t>& ids = scenario.calls[0][static_cast<std::size_t>(rank)].ids;
      for (std::uint32_t pair = 0; pair < ids.size(); ++pair)
        if (ids[pair] == expert) expected.push_back(pair);
      EXPECT_EQ(pairs, expected) << "expert " << expert << ", rank " << rank;
    }
  }
}

TYPED_TEST(RouteOn, EveryPairLiesOnceInItsExpertsList) {
  for (std::uint64_t seed = 1; seed <= 12 && !this->HasFailure(); ++seed) {
    const Scenario scenario = routed_scenario(seed);
    SCOPED_TRACE(scenario.describe());
    Bench<TypeParam> bench(scenario);
    const auto workers = static_cast<int>(1 + seed % 3);
    const std::vector<int> ranks = all_ranks(scenario);
    route_pairs(bench,
                {.ranks = ranks, .workers = workers, .teams = 1 + static_cast<int>(seed % 2)});
    publish_all(bench, ranks);
    for (int rank = 0; rank < scenario.problem.ranks && !this->HasFailure(); ++rank)
      expect_routed(bench.call(rank), scenario);
  }
}

/// 150 tokens of 10: several workers count, and share one expert's list by claims.
TYPED_TEST(RouteOn, ManyWorkersShareTheLists) {
  Scenario scenario;
  scenario.seed = 9;
  scenario.problem.experts = 3;
  scenario.problem.topk = 10;
  scenario.problem.capacity = 150;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(1)};
  sim::RankInput& input = scenario.calls[0][0];
  input.tokens = 150;
  sim::Random random(9);
  for (int pair = 0; pair < 1500; ++pair) {
    input.ids.push_back(random.between(-1, 2));
    input.weights.push_back(1);
  }
  Bench<TypeParam> bench(scenario);
  route_pairs(bench, {.workers = 5, .teams = 2});
  for (int expert = 0; expert < 3; ++expert)
    EXPECT_EQ(
        CountAndMarks::of(bench.call(0).local(bench.call(0).workspace.sent)[expert].value).marks,
        3U)
        << "1,500 pairs are work for three workers of five";
  publish_all(bench, {0});
  expect_routed(bench.call(0), scenario);
}

/// Ids past the last expert are counted, one of them is named, and nothing is written for them.
TYPED_TEST(RouteOn, BadIdsAreCountedAndSkipped) {
  Scenario scenario;
  scenario.problem.ranks = 2;
  scenario.problem.experts = 4;
  scenario.problem.topk = 4;
  scenario.problem.capacity = 3;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(2)};
  scenario.calls[0][1].tokens = 3;
  scenario.calls[0][1].ids = {
      0, 4, -1, 3, 1, 1, std::int64_t{1} << 40, -5, 2, 0x7FFFFFFFFFFFFFFF, 2, 4};
  scenario.calls[0][1].weights.assign(12, 1.0F);
  Bench<TypeParam> bench(scenario);
  route_pairs(bench, {.ranks = {0, 1}});
  publish_all(bench, {0, 1});
  for (int rank = 0; rank < 2; ++rank)
    expect_routed(bench.call(rank), scenario);
  const Workspace& w = bench.call(1).workspace;
  EXPECT_EQ(bench.call(1).local(w.bad_ids)->value, 4U);
  const std::uint64_t first = *bench.call(1).local(w.first_bad_pair);
  EXPECT_TRUE(first == 1 || first == 6 || first == 9 || first == 11) << first;
  EXPECT_EQ(bench.call(0).local(w.bad_ids)->value, 0U);
}

/// Two ranks refuse: every rank concludes with the refusal of the lower one.
TYPED_TEST(RouteOn, ARefusalReachesEveryRank) {
  Scenario scenario;
  scenario.problem.ranks = 5;
  scenario.problem.experts = 5;
  scenario.problem.capacity = 2;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(5)};
  for (sim::RankInput& input : scenario.calls[0]) {
    input.ids.assign(2, 0);
    input.weights.assign(2, 1.0F);
  }
  scenario.calls[0][4].tokens = 3;
  scenario.calls[0][2].refusal = {RefusalKind::kExpertId, 2, 1, 0, 55};
  Bench<TypeParam> bench(scenario);
  route_pairs(bench, {.ranks = all_ranks(scenario)});
  publish_all(bench, all_ranks(scenario));
  for (int rank = 0; rank < 5; ++rank) {
    const Refusal& verdict = *bench.call(rank).local(bench.call(rank).workspace.verdict);
    EXPECT_EQ(verdict.kind, RefusalKind::kExpertId);
    EXPECT_EQ(verdict.rank, 2);
    EXPECT_EQ(verdict.value, 55);
    EXPECT_TRUE(call_is_refused(bench.call(rank)));
  }
}

}  // namespace
}  // namespace megamoe
