#include <gtest/gtest.h>

#include <atomic>

#include "conformance/verbs.hpp"

namespace megamoe::conformance {
namespace {

template <class F>
class WaitingVerbs : public Verbs<F> {};
TYPED_TEST_SUITE(WaitingVerbs, Machines);

Abort abort_of(const Call& call) {
  return Abort::of(call.local(call.workspace.abort)->value);
}

TYPED_TEST(WaitingVerbs, TheClockGoesForwardAndPausesEnd) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    machine.run({}, [](M& m, const Call&) {
      EXPECT_EQ(m.timeout_ms(), 1000U);
      std::uint64_t last = m.now_ms();
      for (int polls = 0; polls < 100; ++polls) {
        m.pause(polls);
        EXPECT_GE(m.now_ms(), last);
        last = m.now_ms();
      }
    });
  });
}

TYPED_TEST(WaitingVerbs, EveryRankSeesARanksProgress) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    machine.run({.ranks = {1}, .workers = 3}, [](M& m, const Call&) {
      for (int i = 0; i < 10; ++i)
        m.bump_progress();
    });
    machine.run({.ranks = {0, 1, 2}}, [](M& m, const Call&) {
      EXPECT_EQ(m.progress_of(1), static_cast<std::uint64_t>(30 * M::kLanes));
      EXPECT_EQ(m.progress_of(0), 0U);
    });
  });
}

/// The first one's record stays, and every rank's abort word says who gave up.
TYPED_TEST(WaitingVerbs, WhoGivesUpTellsEveryRank) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    std::atomic<int> first_lane{-1};
    machine.run({.ranks = {1}, .workers = 2}, [&](M& m, const Call& call) {
      if (m.worker() == 0 && m.lane() == M::kLanes - 1) {
        EXPECT_EQ(m.abort().reason, AbortReason::kNone);
        m.leave({AbortReason::kExpired, 1}, {WaitFor::kRows, 42, 1}, {96, 128});
        m.publish(call.local(call.workspace.gate), std::uint64_t{1});
      } else {
        // No wait of the protocol's: that would obey the abort before it sees the gate.
        for (int polls = 0; m.observe(call.local(call.workspace.gate)) == 0; ++polls)
          m.pause(polls);
        EXPECT_EQ(m.abort().reason, AbortReason::kExpired);
        m.leave(m.abort(), {WaitFor::kGate, 2, 1}, {0, 1});
      }
    });
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(abort_of(machine.call(rank)).reason, AbortReason::kExpired);
      EXPECT_EQ(abort_of(machine.call(rank)).rank, 1);
    }
    const Call& call = machine.call(1);
    const FaultRecord& fault = *call.local(call.workspace.fault);
    EXPECT_EQ(fault.rank, 1);
    EXPECT_EQ(fault.worker, 0);
    EXPECT_EQ(fault.abort.reason, AbortReason::kExpired);
    EXPECT_EQ(fault.wait.what, WaitFor::kRows);
    EXPECT_EQ(fault.wait.subject, 42);
    EXPECT_EQ(fault.observation.seen, 96U);
    EXPECT_EQ(fault.observation.expected, 128U);
    EXPECT_EQ(call.local(call.workspace.fault_claims)->value,
              static_cast<std::uint32_t>(2 * M::kLanes));
  });
}

/// Who obeys somebody else's abort records where it stood and tells nobody; the first cause stays.
TYPED_TEST(WaitingVerbs, WhoObeysTellsNobody) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    const Call& told = machine.call(0);
    told.local(told.workspace.abort)->value = Abort{AbortReason::kDied, 2}.word();
    machine.run({.ranks = {0}}, [](M& m, const Call&) {
      EXPECT_EQ(m.abort().reason, AbortReason::kDied);
      EXPECT_EQ(m.abort().rank, 2);
      m.leave(m.abort(), {WaitFor::kRank, 2, 2}, {3, 4});
    });
    EXPECT_EQ(abort_of(machine.call(1)).reason, AbortReason::kNone);
    EXPECT_EQ(abort_of(machine.call(2)).reason, AbortReason::kNone);
    EXPECT_EQ(told.local(told.workspace.fault)->wait.what, WaitFor::kRank);

    machine.run({.ranks = {1}}, [](M& m, const Call&) {
      m.leave({AbortReason::kExpired, 1}, {WaitFor::kWorkers, 1, 1}, {0, 1});
    });
    EXPECT_EQ(abort_of(machine.call(0)).reason, AbortReason::kDied) << "the first cause stays";
    EXPECT_EQ(abort_of(machine.call(1)).reason, AbortReason::kExpired);
    EXPECT_EQ(abort_of(machine.call(2)).rank, 1);
  });
}

}  // namespace
}  // namespace megamoe::conformance
