#include <gtest/gtest.h>

#include "model/thread_run.hpp"
#include "sim/scenario.hpp"

// The protocol on the CPU machine's verbs and real threads: the simulated machine's problems again,
// this time for what only parallel hardware does, and for ThreadSanitizer.

namespace megamoe::model {
namespace {

constexpr std::uint64_t kTimeoutMs = 60'000;  // ends a deadlock; a good run never waits for it

std::vector<int> all_ranks(const sim::Scenario& scenario) {
  std::vector<int> ranks;
  for (int rank = 0; rank < scenario.problem.ranks; ++rank)
    ranks.push_back(rank);
  return ranks;
}

void run(const sim::Scenario& scenario) {
  SCOPED_TRACE(scenario.describe());
  ThreadRun threads(scenario, kTimeoutMs);
  threads.run(all_ranks(scenario));
  EXPECT_EQ(threads.failure(), "");
  for (int rank = 0; rank < scenario.problem.ranks; ++rank)
    EXPECT_EQ(sim::left_behind(threads.call(rank)), "") << "rank " << rank;
}

TEST(Threads, RandomProblems) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed)
    run(sim::random_scenario(seed, {.ranks = 4, .capacity = 24, .workers = 2, .calls = 3}, {}));
}

TEST(Threads, ManyCallsBackToBack) {
  sim::Scenario scenario =
      sim::random_scenario(7, {.ranks = 3, .capacity = 4, .workers = 2, .calls = 1}, {});
  const auto call = scenario.calls.front();
  scenario.calls.assign(30, call);
  run(scenario);
}

TEST(Threads, TheLeastRingAndTheWorstSkew) {
  for (const int block_m : {8, 192})
    run(sim::worst_skew(1, block_m, {}));
}

TEST(Threads, ARankThatNeverArrivesIsNamed) {
  sim::Scenario scenario =
      sim::random_scenario(3, {.ranks = 4, .capacity = 4, .workers = 2, .calls = 1}, {});
  scenario.problem.ranks = 3;
  scenario.problem.experts = 6;
  scenario.calls = {std::vector<sim::RankInput>(3)};
  for (sim::RankInput& input : scenario.calls[0]) {
    input.workers = 2;
    input.ring.blocks = 24;
  }
  // Every leader waits for rank 0 first, so that no late thread is ever missed instead.
  ThreadRun threads(scenario, 500);
  threads.run({1, 2});
  EXPECT_NE(threads.failure(), "");
  int first_hand_records = 0;
  for (const int rank : {1, 2}) {
    const Workspace& w = threads.call(rank).workspace;
    EXPECT_EQ(Abort::of(threads.call(rank).local(w.abort)->value).reason, AbortReason::kExpired);
    EXPECT_GE(threads.call(rank).local(w.fault_claims)->value, 1U);
    const FaultRecord& fault = *threads.call(rank).local(w.fault);
    EXPECT_EQ(fault.rank, rank);
    if (fault.abort.rank != rank) continue;
    ++first_hand_records;
    EXPECT_EQ(fault.wait.what, WaitFor::kRank);
    EXPECT_EQ(fault.wait.subject, 1);
    EXPECT_EQ(fault.wait.awaited_rank, 0);
    EXPECT_EQ(fault.observation.seen, 0U);
    EXPECT_EQ(fault.observation.expected, 1U);
  }
  EXPECT_GE(first_hand_records, 1);
}

}  // namespace
}  // namespace megamoe::model
