#include "protocol/settle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/settling_team.hpp"
#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Random;
using sim::Scenario;

constexpr int kBlockM = 8;

/// One rank's experts with so many rows, already routed.
class SettleBench {
 public:
  SettleBench(const std::vector<int>& rows, int ring_blocks) {
    scenario.problem.experts = static_cast<int>(rows.size());
    scenario.format = sim::tagged_format(32, 3);
    scenario.calls = {std::vector<sim::RankInput>(1)};
    sim::RankInput& input = scenario.calls[0][0];
    input.experts_per_wave = static_cast<int>(rows.size());
    input.ring = {.blocks = ring_blocks,
                  .block_m = kBlockM,
                  .linear1_blocks = 3,
                  .linear2_blocks = 1,
                  .settled_rows = kBlockM};
  }
  static void route(const Call& call, const std::vector<int>& rows) {
    for (std::size_t expert = 0; expert < rows.size(); ++expert)
      call.local(call.workspace.received_sum)[expert].value =
          CountAndMarks{static_cast<std::uint32_t>(rows[expert]), 1}.word();
  }

  Scenario scenario;
};

std::uint64_t* cells(const Call& call, PoolBlock block, int row_in_block) {
  const Workspace& w = call.workspace;
  const auto row = static_cast<std::uint64_t>(call.ring.row(block, row_in_block));
  return reinterpret_cast<std::uint64_t*>(
      call.local(w.linear2_rows.at(row * w.format.linear2_row_bytes)));
}

std::uint32_t& ready(const Call& call, PoolBlock block) {
  return call.local(call.workspace.ready)[call.ring.place(block)].value;
}

std::uint64_t cell(PoolBlock block, int row_in_block, int n) {
  return sim::mix_all(block.index, row_in_block, n);
}

/// Linear 1 of all of the block, its padding too.
void finish_linear1(const Call& call, PoolBlock block) {
  for (int row = 0; row < kBlockM; ++row)
    for (int n = 0; n < call.ring.linear1_blocks; ++n)
      cells(call, block, row)[n] = cell(block, row, n);
  ready(call, block) += static_cast<std::uint32_t>(call.ring.linear1_blocks);
}

void expect_rows(const Call& call, PoolBlock block, int settled) {
  for (int row = 0; row < kBlockM; ++row) {
    for (int n = 0; n < call.ring.linear1_blocks; ++n) {
      const std::uint64_t fresh = cell(block, row, n);
      ASSERT_EQ(cells(call, block, row)[n], row < settled ? sim::settled_cell(fresh) : fresh)
          << "pool block " << block.index << ", row " << row << ", cell " << n;
    }
  }
}

/// A team's first row of a wave, when so many rows lie before it.
int first_row(int team, int teams, int before) {
  return ((team - before) % teams + teams) % teams;
}

template <class M>
class SettleOn : public testing::Test {};
using SettlingTeams =
    testing::Types<sim::SettlingTeam<1, 2>, sim::SettlingTeam<3, 1>, sim::SettlingTeam<32, 2>>;
TYPED_TEST_SUITE(SettleOn, SettlingTeams);

/// Wave after wave through a small ring: each row once, no padding; counters end where linear 2
/// goes on.
TYPED_TEST(SettleOn, EveryRowOfAWaveOnce) {
  for (std::uint64_t seed = 1; seed <= 12 && !this->HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<int> rows(static_cast<std::size_t>(random.between(1, 5)));
    for (int& count : rows)
      count = random.one_in(3) ? 0 : random.between(1, 40);
    const SettleBench settle(rows, random.between(1, 6));
    Bench<TypeParam> bench(settle.scenario);
    const Call& call = bench.call(0);
    SettleBench::route(call, rows);
    const int workers = random.between(1, 3);
    const int teams = random.between(1, 2);
    int before = 0;
    for (auto wave = waves_of(call); !wave.is_over(); wave.advance()) {
      for (int i = 0; i < wave.blocks(); ++i)
        finish_linear1(call, {wave.first_block().index + i});
      const auto result =
          bench.run({.workers = workers, .teams = teams}, seed, [&](TypeParam& m, const Call& c) {
            auto mine = wave;
            const int team = m.team() * workers + m.worker();
            Settler<TypeParam> settler(m, c, first_row(team, workers * teams, before));
            EXPECT_TRUE(settler.settle(mine));
          });
      ASSERT_TRUE(result.is_clean()) << result.failure;
      wave.for_each_expert([&](const WaveRows& of_expert) {
        for (int first = 0; first < of_expert.count; first += kBlockM) {
          const PoolBlock block = of_expert.block(first, kBlockM);
          expect_rows(call, block, std::min(kBlockM, of_expert.count - first));
          EXPECT_EQ(ready(call, block), call.ring.ready_when_done(block)) << "padding counts, too";
        }
        before += of_expert.count;
        return true;
      });
    }
  }
}

/// Linear 1 is one block short of the second pool block: the first one is settled and announced,
/// the second one awaited by name and untouched.
TYPED_TEST(SettleOn, WhatWaitsForLinear1HoldsNothingBack) {
  const std::vector<int> rows = {16};
  const SettleBench settle(rows, 3);
  Bench<TypeParam> bench(settle.scenario);
  const Call& call = bench.call(0);
  SettleBench::route(call, rows);
  finish_linear1(call, {0});
  finish_linear1(call, {1});
  --ready(call, {1});
  const auto result = bench.run({.teams = 2}, 1, [](TypeParam& m, const Call& c) {
    auto wave = waves_of(c);
    EXPECT_FALSE(Settler<TypeParam>(m, c, m.team()).settle(wave));
  });
  EXPECT_EQ(result.ending, sim::Scheduler::Ending::kDone);
  expect_rows(call, {0}, kBlockM);
  expect_rows(call, {1}, 0);
  EXPECT_EQ(ready(call, {0}), 3U + kBlockM);
  EXPECT_EQ(ready(call, {1}), 2U);
  ASSERT_FALSE(result.departures.empty());
  EXPECT_EQ(result.departures[0].wait.what, WaitFor::kLinear1);
  EXPECT_EQ(result.departures[0].wait.subject, 1);
  EXPECT_EQ(result.departures[0].observation.seen, 2U);
  EXPECT_EQ(result.departures[0].observation.expected, 3U);
}

/// Later laps count on: what an earlier one left in the counter is not linear 1 of this one.
TYPED_TEST(SettleOn, Linear1IsAwaitedByLap) {
  const std::vector<int> rows = {kBlockM + 1};
  const SettleBench settle(rows, 1);
  Bench<TypeParam> bench(settle.scenario);
  const Call& call = bench.call(0);
  SettleBench::route(call, rows);
  ready(call, {1}) = 3 + kBlockM + 2;
  const auto result = bench.run({}, 1, [](TypeParam& m, const Call& c) {
    auto wave = waves_of(c);
    wave.advance();
    EXPECT_FALSE(Settler<TypeParam>(m, c, 0).settle(wave));
  });
  ASSERT_FALSE(result.departures.empty());
  EXPECT_EQ(result.departures[0].observation.expected, 3U + kBlockM + 3);
  EXPECT_EQ(ready(call, {1}), 3U + kBlockM + 2);
}

}  // namespace
}  // namespace megamoe
