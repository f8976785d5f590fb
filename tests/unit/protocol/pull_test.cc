#include "protocol/pull.hpp"

#include <gtest/gtest.h>

#include "protocol/forward.hpp"
#include "sim/expectation.hpp"
#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Expectation;
using sim::Scenario;

/// A ring with room for everything: no pull waits.
Scenario roomy(std::uint64_t seed) {
  Scenario scenario = routed_scenario(seed);
  scenario.pool_rows = full_pool_rows(scenario.problem);
  for (sim::RankInput& input : scenario.calls[0]) {
    input.ring.block_m = 16;
    input.ring.blocks = static_cast<int>(scenario.pool_rows / 16);
  }
  return scenario;
}

/// Every row in its place: experts one behind the other, each padded to a block, ranks in turn.
void expect_pulled(const Call& call, const Scenario& scenario) {
  const Expectation expectation(scenario, 0);
  const Problem& p = scenario.problem;
  const Workspace& w = call.workspace;
  int block = 0;
  for (int local = 0; local < p.experts_per_rank(); ++local) {
    const int expert = call.peers.rank * p.experts_per_rank() + local;
    const std::vector<int>& order = expectation.order(expert);
    for (int row = 0; row < static_cast<int>(order.size()); ++row) {
      const int at = block * 16 + row;
      const SourceSlot slot = call.local(w.row_source)[at];
      ASSERT_EQ(static_cast<int>(slot.rank), order[static_cast<std::size_t>(row)]);
      ASSERT_TRUE(expectation.is_row_of(expert, slot));
      const auto* codes =
          reinterpret_cast<const std::uint8_t*>(call.local(w.linear1_rows)) + at * p.hidden;
      const auto* scales = reinterpret_cast<const std::uint8_t*>(call.local(w.linear1_scales)) +
                           at * (p.hidden / 32);
      ASSERT_EQ(sim::row_tag(
                    sim::content_of(codes, scales, p.hidden), call.local(w.row_weight)[at], expert),
                expectation.tag(slot));
    }
    const int blocks = (static_cast<int>(order.size()) + 15) / 16;
    for (int b = 0; b < blocks; ++b)
      EXPECT_EQ(call.local(w.arrived)[block + b].value, 16U) << "padding counts as arrived";
    block += blocks;
  }
  for (; block < call.ring.blocks; ++block)
    ASSERT_EQ(call.local(w.arrived)[block].value, 0U);
}

template <class M>
class PullOn : public testing::Test {};
TYPED_TEST_SUITE(PullOn, TestTeams);

TYPED_TEST(PullOn, EveryRowLiesInItsPlaceAndIsAnnounced) {
  for (std::uint64_t seed = 1; seed <= 8 && !this->HasFailure(); ++seed) {
    const Scenario scenario = roomy(seed);
    SCOPED_TRACE(scenario.describe());
    Bench<TypeParam> bench(scenario);
    const std::vector<int> ranks = all_ranks(scenario);
    route_pairs(bench, {.ranks = ranks});
    publish_all(bench, ranks);
    const auto result =
        bench.run({.ranks = ranks,
                   .workers = static_cast<int>(1 + seed % 3),
                   .teams = static_cast<int>(1 + seed % 2)},
                  seed,
                  [](TypeParam& m, const Call& call) { EXPECT_TRUE(bring_rows(m, call)); });
    ASSERT_TRUE(result.is_clean()) << result.failure;
    for (const int rank : ranks)
      expect_pulled(bench.call(rank), scenario);
  }
}

/// Nobody computes: the first row past the ring is awaited by name, and all rows before it are
/// announced.
TYPED_TEST(PullOn, WhatWaitsForAPlaceHoldsNothingBack) {
  Scenario scenario;
  scenario.problem.topk = 10;
  scenario.problem.capacity = 5;
  scenario.format = sim::tagged_format(32, 1);
  scenario.calls = {std::vector<sim::RankInput>(1)};
  sim::RankInput& input = scenario.calls[0][0];
  input.tokens = 5;
  input.ids.assign(50, 0);
  input.weights.assign(50, 1.0F);
  input.ring = {.blocks = 3, .block_m = 8, .linear1_blocks = 1, .linear2_blocks = 2};
  Bench<TypeParam> bench(scenario);
  route_pairs(bench, {});
  publish_all(bench, {0});
  const auto result = bench.run(
      {.teams = 2}, 1, [](TypeParam& m, const Call& call) { EXPECT_FALSE(bring_rows(m, call)); });
  EXPECT_EQ(result.ending, sim::Scheduler::Ending::kDone);
  for (int place = 0; place < 3; ++place)
    EXPECT_EQ(bench.call(0).local(bench.call(0).workspace.arrived)[place].value, 8U);
  ASSERT_FALSE(result.departures.empty());
  EXPECT_EQ(result.departures[0].wait.what, WaitFor::kRingPlace);
  EXPECT_EQ(result.departures[0].wait.subject, 3);
  EXPECT_EQ(result.departures[0].observation.seen, 0U);
  EXPECT_EQ(result.departures[0].observation.expected, 2U);
}

}  // namespace
}  // namespace megamoe
