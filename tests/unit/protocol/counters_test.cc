#include "protocol/counters.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace megamoe {
namespace {

TEST(CountAndMarks, HalvesAddIndependently) {
  std::uint64_t word = 0;
  for (std::uint32_t worker = 1; worker <= 132; ++worker)
    word += CountAndMarks{worker * 1000, 1}.word();
  EXPECT_EQ(CountAndMarks::of(word).count, 132U * 133 / 2 * 1000);
  EXPECT_EQ(CountAndMarks::of(word).marks, 132U);
}

/// The most rows that one expert can get from 72 ranks leave the marks alone.
TEST(CountAndMarks, TheLargestCountDoesNotCarry) {
  std::uint64_t word = 0;
  for (int rank = 0; rank < 72; ++rank)
    word += CountAndMarks{65'536U * 32, 1}.word();
  EXPECT_EQ(CountAndMarks::of(word).count, 72U * 65'536 * 32);
  EXPECT_EQ(CountAndMarks::of(word).marks, 72U);
}

TEST(Counters, AreWordsOfTheirOwnTypes) {
  static_assert(!std::is_same_v<ArrivedRows, ReadyBlocks>);
  static_assert(!std::is_convertible_v<ReadyBlocks*, FinishedBlocks*>);
  static_assert(sizeof(Gate) == 8 && sizeof(RankArrival) == 8, "epochs don't wrap");
  static_assert(sizeof(Sent) == 8 && sizeof(ReceivedSum) == 8, "a count and marks");
  static_assert(RankArrival::kScope == Scope::kSystem && Gate::kScope == Scope::kDevice);
  static_assert(RolesJoined::kScope == Scope::kWorker);
}

}  // namespace
}  // namespace megamoe
