#include <gtest/gtest.h>

#include "sim/random.hpp"
#include "sim/simulate.hpp"

// What stops, and what the others say about it. The clock is simulated: a bound of a second costs
// nothing.

namespace megamoe::sim {
namespace {

constexpr std::uint64_t kBoundMs = 1000;
// The most patient wait is one for another wait of the same rank.
constexpr std::uint64_t kLongestMs = 10 * kBoundMs;

/// The record of the rank that gave up first tells the truth about the frozen fibers.
void expect_culprit_named(const FaultRecord& record, const Freeze& freeze) {
  EXPECT_EQ(record.wait.awaited_rank, freeze.rank)
      << "rank " << record.rank << " blames rank " << record.wait.awaited_rank;
  // Whoever waits for a wait of its own rank leaves the word to it, unless that one is what
  // stopped.
  if (is_second_hand(record.wait.what)) {
    EXPECT_EQ(record.rank, freeze.rank);
    EXPECT_TRUE(freeze.worker == 0 || freeze.worker == record.worker);
  }
}

/// True when the freeze came before the end.
bool expect_all_others_leave(const Scenario& scenario, const SimulationOptions& options) {
  const Outcome outcome = simulate(scenario, options);
  SCOPED_TRACE(scenario.describe());
  SCOPED_TRACE(outcome.describe());
  EXPECT_EQ(outcome.failure, "");
  EXPECT_NE(outcome.ending, Scheduler::Ending::kStuck) << "a lane neither ended nor left";
  EXPECT_LE(outcome.now_ms, kLongestMs);
  for (const Departure& departure : outcome.departures)
    EXPECT_EQ(departure.when_ms, outcome.departures.front().when_ms) << "an abort ends every wait";
  int first_hand_records = 0;
  for (std::size_t rank = 0; rank < outcome.ranks.size(); ++rank) {
    const RankEnd& end = outcome.ranks[rank];
    if (end.fault_claims == 0) continue;
    EXPECT_EQ(end.abort.reason, AbortReason::kExpired);
    EXPECT_EQ(end.fault.rank, static_cast<int>(rank));
    EXPECT_LT(end.fault.worker,
              scenario.calls[static_cast<std::size_t>(end.calls_done)][rank].workers);
    EXPECT_NE(end.fault.wait.what, WaitFor::kNothing);
    EXPECT_LT(end.fault.observation.seen, end.fault.observation.expected);
    EXPECT_EQ(end.fault.abort.reason, AbortReason::kExpired);
    if (end.fault.abort.rank != static_cast<int>(rank)) continue;
    ++first_hand_records;
    expect_culprit_named(end.fault, options.scheduler.freeze);
  }
  EXPECT_EQ(first_hand_records > 0, !outcome.departures.empty());
  return !outcome.departures.empty();
}

Scenario scenario_of(std::uint64_t seed) {
  // Compute teams that meet at a pipeline would wait for each other second-hand, too.
  const Layout layout = kLayouts[seed % 2];
  return random_scenario(
      seed, {.ranks = 4, .capacity = 12, .calls = 2}, seed % 3 == 0 ? settling(layout) : layout);
}

TEST(Fault, ARankNeverArrives) {
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    const Scenario scenario = scenario_of(seed);
    const int frozen = static_cast<int>(seed) % scenario.problem.ranks;
    const bool left =
        expect_all_others_leave(scenario,
                                {.scheduler = {.seed = seed, .freeze = {.turn = 0, .rank = frozen}},
                                 .timeout_ms = kBoundMs});
    EXPECT_EQ(left, scenario.problem.ranks > 1);
  }
}

/// `role`: Freeze::kAny, or one of the worker's two.
void freeze_workers(int role) {
  int left = 0;
  for (std::uint64_t seed = 1; seed <= 100 && !testing::Test::HasFailure(); ++seed) {
    const Scenario scenario = scenario_of(seed);
    Random random(seed);
    // Somewhere in the run, by the length that it has when nothing stops.
    const std::uint64_t turns = simulate(scenario, {.scheduler = {.seed = seed}}).turns;
    const int rank = random.between(0, scenario.problem.ranks - 1);
    const int workers = scenario.calls.front()[static_cast<std::size_t>(rank)].workers;
    const Freeze freeze{.turn = random.below(turns),
                        .rank = rank,
                        .worker = random.between(0, workers - 1),
                        .role = role};
    SCOPED_TRACE(testing::Message()
                 << "turn " << freeze.turn << ", rank " << rank << ", worker " << freeze.worker);
    left += expect_all_others_leave(
                scenario, {.scheduler = {.seed = seed, .freeze = freeze}, .timeout_ms = kBoundMs})
                ? 1
                : 0;
  }
  EXPECT_GT(left, 40) << "most freezes came too late to prove anything";
}

TEST(Fault, AWorkerStops) {
  freeze_workers(Freeze::kAny);
}
TEST(Fault, ADispatchRoleStops) {
  freeze_workers(static_cast<int>(Role::kDispatch));
}
TEST(Fault, AComputeRoleStops) {
  freeze_workers(static_cast<int>(Role::kCompute));
}

/// All rows for rank 1, whose blocks take almost the whole bound each; it shows progress, and
/// nobody may give up on it, neither those who wait for it nor those who wait for them.
TEST(Fault, ASlowRankIsNotBlamed) {
  for (std::uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    Scenario scenario = worst_skew(seed, 32, seed % 2 == 0 ? settling(kLayouts[0]) : kLayouts[0]);
    for (RankInput& input : scenario.calls.front())
      std::fill(input.ids.begin(), input.ids.end(), 2);
    const Outcome outcome = simulate(scenario,
                                     {.scheduler = {.seed = seed},
                                      .timeout_ms = kBoundMs,
                                      .slow = {.rank = 1, .block_ms = kBoundMs * 9 / 10}});
    EXPECT_TRUE(outcome.is_clean(scenario)) << scenario.describe() << '\n' << outcome.describe();
    EXPECT_GT(outcome.now_ms, 50 * kBoundMs);
  }
}

/// Twelve ranks without tokens enter a call one after the other, each later than the one before by
/// almost the bound; an arrival is progress.
TEST(Fault, RanksThatComeOneByOneAreAwaited) {
  for (std::uint64_t seed = 1; seed <= 5 && !HasFailure(); ++seed) {
    Scenario scenario;
    scenario.seed = seed;
    scenario.problem.ranks = 12;
    scenario.problem.experts = 12;
    scenario.format = tagged_format(32, 1);
    scenario.calls = {std::vector<RankInput>(12)};
    for (RankInput& input : scenario.calls.front())
      input.ring = {.blocks = 24, .block_m = 16, .linear1_blocks = 1, .linear2_blocks = 1};
    const Outcome outcome = simulate(
        scenario,
        {.scheduler = {.seed = seed}, .timeout_ms = kBoundMs, .late_ms = kBoundMs * 9 / 10});
    EXPECT_TRUE(outcome.is_clean(scenario)) << outcome.describe();
    EXPECT_GT(outcome.now_ms, 9 * kBoundMs);
  }
}

/// No bound: nobody ever leaves.
TEST(Fault, WithoutABoundEveryoneWaits) {
  const Scenario scenario = worst_skew(1, 32, kLayouts[0]);
  const Outcome outcome = simulate(
      scenario, {.scheduler = {.seed = 1, .freeze = {.turn = 0, .rank = 2}}, .timeout_ms = 0});
  EXPECT_EQ(outcome.ending, Scheduler::Ending::kStuck);
  EXPECT_TRUE(outcome.departures.empty());
}

}  // namespace
}  // namespace megamoe::sim
