#pragma once

#include <string>
#include <vector>

namespace megamoe {

// Which rank works on which card, and on how many of its SMs: arithmetic on what the ranks told
// each other, so that all of them come to the same answer.

/// What a rank asks for.
struct CardWish {
  int card = 0;
  int num_sms = 0;  ///< 0: an even share of what the others on the card leave
};

/// What it gets.
struct CardShare {
  int num_sms = 0;
  bool is_alone = true;  ///< on its card
};

/// The card of a rank that has no wish: ranks in order, evenly over as many cards as are needed.
int card_of_rank(int rank, int ranks, int cards);

/// The shares by rank. Throws Error(kInvalidArgument) when the ranks of a card need more SMs than
/// `sms_of_card` says it has, with both numbers.
std::vector<CardShare> share_cards(const std::vector<CardWish>& wishes,
                                   const std::vector<int>& sms_of_card);

/// A wish as text for the other ranks, and back.
std::string text_of(const CardWish& wish);
CardWish card_wish_of(const std::string& text);

}  // namespace megamoe
