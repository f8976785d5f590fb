#include "sim/scheduler.hpp"

#include <gtest/gtest.h>

#include <string>

namespace megamoe::sim {
namespace {

constexpr Style kStyles[] = {Style::kUniform, Style::kSticky, Style::kPriority};

/// Which of three fibers had each of its ten turns when.
std::string interleaving(std::uint64_t seed, Style style) {
  std::string order;
  Scheduler scheduler({.seed = seed, .style = style});
  for (const char name : {'a', 'b', 'c'}) {
    scheduler.spawn({}, [&scheduler, &order, name] {
      for (int i = 0; i < 10; ++i) {
        scheduler.turn();
        order += name;
      }
    });
  }
  EXPECT_EQ(scheduler.run(), Scheduler::Ending::kDone);
  return order;
}

TEST(Scheduler, ASeedIsAnInterleaving) {
  for (const Style style : kStyles) {
    EXPECT_EQ(interleaving(7, style), interleaving(7, style));
    EXPECT_EQ(interleaving(7, style).size(), 30U);
    bool differs = false;
    for (std::uint64_t seed = 8; seed < 12; ++seed)
      differs = differs || interleaving(seed, style) != interleaving(7, style);
    EXPECT_TRUE(differs);
  }
}

TEST(Scheduler, APollerGoesOnWhenItsWordIsWritten) {
  Scheduler scheduler({.seed = 3});
  int word = 0;
  int polls = 0;
  scheduler.spawn({}, [&] {
    for (;;) {
      scheduler.look(&word);
      scheduler.turn();
      if (word == 5) break;
      ++polls;
      scheduler.pause();
    }
  });
  scheduler.spawn({}, [&] {
    for (int i = 0; i < 5; ++i) {
      scheduler.turn();
      ++word;
      scheduler.touched(&word);
    }
  });
  EXPECT_EQ(scheduler.run(), Scheduler::Ending::kDone);
  EXPECT_EQ(scheduler.jumps(), 0);
  EXPECT_LE(polls, 6);
}

TEST(Scheduler, OnlyTheClockEndsADeadlock) {
  Scheduler scheduler({.seed = 3, .jump_ms = 100});
  const int words[2] = {};
  for (const int& word : words) {
    scheduler.spawn({}, [&scheduler, &word] {
      while (scheduler.now_ms() < 450) {
        scheduler.look(&word);
        scheduler.turn();
        scheduler.pause();
      }
    });
  }
  EXPECT_EQ(scheduler.run(), Scheduler::Ending::kDone);
  EXPECT_EQ(scheduler.jumps(), 5);
  EXPECT_EQ(scheduler.now_ms(), 500U);
}

TEST(Scheduler, ASleeperThatNobodyWakesIsStuck) {
  Scheduler scheduler({.seed = 3});
  bool has_gone_on = false;
  scheduler.spawn({}, [&] {
    scheduler.sleep();
    has_gone_on = true;
  });
  scheduler.spawn({}, [&] { scheduler.turn(); });
  EXPECT_EQ(scheduler.run(), Scheduler::Ending::kStuck);
  EXPECT_FALSE(has_gone_on);
}

TEST(Scheduler, AFreezeSelectsByTag) {
  Scheduler scheduler({.seed = 3, .freeze = {.turn = 40, .rank = 1, .worker = 0}});
  int ended = 0;
  for (int rank = 0; rank < 2; ++rank) {
    for (int worker = 0; worker < 2; ++worker) {
      scheduler.spawn({rank, worker, 0}, [&] {
        for (int i = 0; i < 100; ++i)
          scheduler.turn();
        ++ended;
      });
    }
  }
  EXPECT_EQ(scheduler.run(), Scheduler::Ending::kDone);
  EXPECT_EQ(ended, 3);
}

TEST(Scheduler, AFailureEndsTheRunAtOnce) {
  Scheduler scheduler({.seed = 3});
  int turns_after = 0;
  bool has_failed = false;
  for (int i = 0; i < 2; ++i) {
    scheduler.spawn({}, [&, i] {
      for (int turn = 0; turn < 50; ++turn) {
        scheduler.turn();
        turns_after += has_failed ? 1 : 0;
        if (i == 0 && turn == 20) {
          has_failed = true;
          scheduler.fail("the first cause");
        }
      }
    });
  }
  EXPECT_EQ(scheduler.run(), Scheduler::Ending::kFailed);
  EXPECT_EQ(scheduler.failure(), "the first cause");
  EXPECT_EQ(turns_after, 0);
}

}  // namespace
}  // namespace megamoe::sim
