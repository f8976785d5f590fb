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

/// The card of a rank that is a process: a card each. A process that sees one card takes that, as
/// its launcher chose it. Throws Error(kUnsupportedMachine) when there are fewer cards than ranks.
int card_of_process(int rank, int ranks, int cards);

/// Throws Error(kUnsupportedMachine), with both counts, when two ranks name the same place.
void require_cards_apart(const std::vector<std::string>& places);

/// Why so many ranks can't have a card each; empty when they can.
std::string why_not_a_card_each(int ranks, int cards);

/// The shares by rank. Throws Error(kInvalidArgument) when the ranks of a card need more SMs than
/// `sms_of_card` says it has, with both numbers.
std::vector<CardShare> share_cards(const std::vector<CardWish>& wishes,
                                   const std::vector<int>& sms_of_card);

/// A wish as text for the other ranks, and back.
std::string text_of(const CardWish& wish);
CardWish card_wish_of(const std::string& text);

}  // namespace megamoe
