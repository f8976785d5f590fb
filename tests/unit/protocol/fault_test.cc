#include "protocol/fault.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "megamoe/problem.hpp"

namespace megamoe {
namespace {

/// As much of a machine as a wait needs: each poll takes 100 ms, and things happen by the clock.
struct Clockwork {
  std::uint64_t bound = 1000;
  std::uint64_t time = 0;
  std::vector<std::uint64_t> bumps_of_rank[3];  ///< when its progress goes up
  std::optional<std::uint64_t> aborts_at;
  Abort abort_word{AbortReason::kDied, 2};

  int vain_polls = 0;
  std::vector<Abort> left;
  Wait left_wait;
  Observation left_seen;

  int rank() const { return 0; }
  std::uint64_t timeout_ms() const { return bound; }
  std::uint64_t now_ms() const { return time; }
  std::uint64_t progress_of(int rank) const {
    std::uint64_t progress = 0;
    for (const std::uint64_t when : bumps_of_rank[rank])
      progress += when <= time ? 1 : 0;
    return progress;
  }
  Abort abort() const { return aborts_at && *aborts_at <= time ? abort_word : Abort{}; }
  void pause(int polls) {
    EXPECT_EQ(polls, vain_polls++);
    time += 100;
  }
  void leave(const Abort& abort, const Wait& wait, const Observation& seen) {
    left.push_back(abort);
    left_wait = wait;
    left_seen = seen;
  }
};

constexpr Wait kForRank1{WaitFor::kRank, 2, 1};

/// Reached from a moment on.
bool wait_until_time(Clockwork& m, const Wait& wait, std::uint64_t moment) {
  return wait_until(m, wait, [&] { return Observation{m.time, moment}; });
}

TEST(Abort, SurvivesItsWord) {
  for (const AbortReason reason :
       {AbortReason::kExpired, AbortReason::kDied, AbortReason::kStopped}) {
    for (int rank = 0; rank < kMaxRanks; ++rank) {
      const Abort abort{reason, rank};
      EXPECT_NE(abort.word(), 0U);
      EXPECT_EQ(Abort::of(abort.word()).reason, reason);
      EXPECT_EQ(Abort::of(abort.word()).rank, rank);
    }
  }
  EXPECT_EQ(Abort::of(0).reason, AbortReason::kNone);
}

TEST(WaitUntil, WhatIsThereNeedsNoWait) {
  Clockwork m;
  m.aborts_at = 0;  // not even looked at
  EXPECT_TRUE(wait_until_time(m, kForRank1, 0));
  EXPECT_EQ(m.time, 0U);
  EXPECT_TRUE(m.left.empty());
}

TEST(WaitUntil, GoesOnWhenItIsReached) {
  Clockwork m;
  EXPECT_TRUE(wait_until_time(m, kForRank1, 900));
  EXPECT_EQ(m.time, 900U);
  EXPECT_TRUE(m.left.empty());
}

TEST(WaitUntil, ExpiresAndSaysWhatItSaw) {
  Clockwork m;
  EXPECT_FALSE(wait_until_time(m, kForRank1, 5000));
  EXPECT_EQ(m.time, 1000U);
  ASSERT_EQ(m.left.size(), 1U);
  EXPECT_EQ(m.left[0].reason, AbortReason::kExpired);
  EXPECT_EQ(m.left[0].rank, 0);
  EXPECT_EQ(m.left_wait.what, WaitFor::kRank);
  EXPECT_EQ(m.left_wait.subject, 2);
  EXPECT_EQ(m.left_wait.awaited_rank, 1);
  EXPECT_EQ(m.left_seen.seen, 1000U);
  EXPECT_EQ(m.left_seen.expected, 5000U);
}

TEST(WaitUntil, ProgressOfTheAwaitedRankStartsTheBoundAnew) {
  Clockwork m;
  for (std::uint64_t when = 500; when <= 20'000; when += 900)
    m.bumps_of_rank[1].push_back(when);
  EXPECT_TRUE(wait_until_time(m, kForRank1, 20'000));
  EXPECT_TRUE(m.left.empty());
}

TEST(WaitUntil, ProgressOfAnotherRankDoesNot) {
  Clockwork m;
  for (std::uint64_t when = 0; when <= 20'000; when += 100)
    m.bumps_of_rank[2].push_back(when);
  EXPECT_FALSE(wait_until_time(m, kForRank1, 20'000));
  EXPECT_EQ(m.time, 1000U);
}

TEST(WaitUntil, AfterTheLastProgressItTakesAtMostTwoBounds) {
  for (std::uint64_t last = 100; last < 1000; last += 100) {
    Clockwork m;
    m.bumps_of_rank[1] = {last};
    EXPECT_FALSE(wait_until_time(m, kForRank1, 20'000));
    EXPECT_GE(m.time, last + 1000);
    EXPECT_LE(m.time, last + 2000);
  }
}

TEST(WaitUntil, AGatesWaitLivesOnAnyRanksProgress) {
  Clockwork m;
  for (std::uint64_t when = 1000; when <= 40'000; when += 1000)
    m.bumps_of_rank[when / 1000 % 3].push_back(when);
  EXPECT_TRUE(wait_until_time(m, {WaitFor::kGate, 1, 0, 3}, 40'000));
}

/// The leader's wait for another rank expires at two bounds after the last progress at the latest;
/// those who wait for the leader must not have spoken by then.
TEST(WaitUntil, ASecondHandWaitLetsTheOtherSpeakFirst) {
  for (const WaitFor what : {WaitFor::kGate, WaitFor::kRoles, WaitFor::kPipeline}) {
    for (std::uint64_t last = 0; last < 6000; last += 100) {
      Clockwork m;
      m.bumps_of_rank[1] = {last};
      EXPECT_FALSE(wait_until_time(m, {what, 1, 1}, 50'000));
      EXPECT_GT(m.time, last + 2000);
      EXPECT_GE(m.time, 6000U);
      EXPECT_LE(m.time, last + 6000);
    }
  }
}

TEST(WaitUntil, AnAbortIsObeyed) {
  Clockwork m;
  m.aborts_at = 300;
  EXPECT_FALSE(wait_until_time(m, kForRank1, 5000));
  EXPECT_EQ(m.time, 300U);
  ASSERT_EQ(m.left.size(), 1U);
  EXPECT_EQ(m.left[0].reason, AbortReason::kDied);
  EXPECT_EQ(m.left[0].rank, 2);
}

TEST(WaitUntil, WhatIsReachedCountsMoreThanAnAbort) {
  Clockwork m;
  m.aborts_at = 300;
  EXPECT_TRUE(wait_until_time(m, kForRank1, 300));
  EXPECT_TRUE(m.left.empty());
}

TEST(WaitUntil, WithoutABoundOnlyAnAbortEndsIt) {
  for (const Wait& wait : {kForRank1, Wait{WaitFor::kGate, 1, 0, 3}}) {
    Clockwork m;
    m.bound = 0;
    m.aborts_at = 1'000'000;
    EXPECT_FALSE(wait_until_time(m, wait, 2'000'000));
    EXPECT_EQ(m.time, 1'000'000U);
  }
}

}  // namespace
}  // namespace megamoe
