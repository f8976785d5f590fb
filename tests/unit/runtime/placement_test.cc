// Which rank is on which card, and with how many SMs: every rank must come to the same answer, and
// nobody may get what is not there.
#include "runtime/gpu/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "megamoe/error.hpp"

namespace megamoe {
namespace {

std::string refusal(const std::vector<CardWish>& wishes, const std::vector<int>& sms) {
  try {
    share_cards(wishes, sms);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return {};
}

TEST(Placement, SpreadsRanksEvenlyAndInOrder) {
  for (int cards = 1; cards <= 8; ++cards)
    for (int ranks = 1; ranks <= 72; ++ranks) {
      std::vector<int> load(static_cast<std::size_t>(cards));
      int before = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const int card = card_of_rank(rank, ranks, cards);
        ASSERT_GE(card, before);
        ASSERT_LT(card, cards);
        before = card;
        ++load[static_cast<std::size_t>(card)];
      }
      const auto used = load.begin() + std::min(ranks, cards);
      EXPECT_LE(*std::max_element(load.begin(), used) - *std::min_element(load.begin(), used), 1);
      EXPECT_EQ(std::count(used, load.end(), 0), load.end() - used) << "no more cards than ranks";
    }
}

TEST(Placement, ACardIsSharedAmongItsRanks) {
  const auto shares = share_cards({{0, 0}, {0, 0}, {0, 30}, {1, 0}}, {132, 78});
  EXPECT_EQ(shares[0].num_sms, 51);
  EXPECT_EQ(shares[1].num_sms, 51);
  EXPECT_EQ(shares[2].num_sms, 30);
  EXPECT_EQ(shares[3].num_sms, 78);
  EXPECT_FALSE(shares[0].is_alone);
  EXPECT_TRUE(shares[3].is_alone);
}

TEST(Placement, NeverGivesMoreThanThereIs) {
  for (int ranks = 1; ranks <= 72; ++ranks)
    for (const int wish : {0, 1}) {
      const std::vector<CardWish> wishes(static_cast<std::size_t>(ranks), {0, wish});
      int sum = 0;
      for (const CardShare& share : share_cards(wishes, {132})) {
        EXPECT_GE(share.num_sms, 1);
        sum += share.num_sms;
      }
      EXPECT_LE(sum, 132);
    }
}

TEST(Placement, RefusesWhatDoesNotFitWithBothNumbers) {
  EXPECT_EQ(refusal({{0, 100}, {0, 100}}, {132}),
            "ranks 0 and 1 need 200 SMs of card 0; it has 132");
  EXPECT_EQ(refusal({{0, 0}, {1, 132}, {1, 0}}, {132, 132}),
            "ranks 1 and 2 need 133 SMs of card 1; it has 132");
  EXPECT_EQ(refusal({{0, 0}, {0, 0}, {0, 0}}, {2}),
            "ranks 0, 1 and 2 need at least 3 SMs of card 0; it has 2");
}

TEST(Placement, WishesTravelAsText) {
  const CardWish wish = card_wish_of(text_of({3, 17}));
  EXPECT_EQ(wish.card, 3);
  EXPECT_EQ(wish.num_sms, 17);
}

// Ranks that are processes need a card each, and say so with both counts before any of them waits.
TEST(Placement, ProcessesGetACardEachInOrder) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(card_of_process(rank, 4, 4), rank);
    EXPECT_EQ(card_of_process(rank, 4, 8), rank) << "others are for others";
    EXPECT_EQ(card_of_process(rank, 4, 1), 0) << "the launcher showed it one";
  }
  EXPECT_EQ(why_not_a_card_each(2, 2), "");
  EXPECT_EQ(why_not_a_card_each(4, 2).find("ranks is 4, and there are 2 cards"), 0U);
  EXPECT_EQ(why_not_a_card_each(2, 1).find("ranks is 2, and there is 1 card"), 0U);
  try {
    card_of_process(0, 4, 2);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupportedMachine);
    EXPECT_EQ(error.what(), why_not_a_card_each(4, 2));
  }
}

TEST(Placement, TwoProcessesOnOneCardAreRefusedByName) {
  require_cards_apart({"0000:01:00.0", "0000:02:00.0"});
  try {
    require_cards_apart({"0000:01:00.0", "0000:02:00.0", "0000:01:00.0"});
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupportedMachine);
    EXPECT_STREQ(error.what(),
                 "ranks 0 and 2 are both on card 0000:01:00.0: 3 ranks that are processes need a "
                 "card each, and have 2");
  }
}

}  // namespace
}  // namespace megamoe
