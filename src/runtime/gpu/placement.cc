#include "runtime/gpu/placement.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/check.hpp"
#include "runtime/group/link.hpp"

namespace megamoe {
namespace {

/// The ranks of one card together.
struct CardLoad {
  std::vector<int> ranks;
  int asked = 0;    // SMs, of those that say how many
  int sharers = 0;  // ranks that take what is left
};

CardLoad load_of(int card, const std::vector<CardWish>& wishes) {
  CardLoad load;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].card != card) continue;
    load.ranks.push_back(static_cast<int>(rank));
    load.asked += wishes[rank].num_sms;
    load.sharers += wishes[rank].num_sms == 0 ? 1 : 0;
  }
  return load;
}

}  // namespace

int card_of_rank(int rank, int ranks, int cards) {
  const int used = std::min(ranks, cards);
  return rank * used / ranks;
}

std::string why_not_a_card_each(int ranks, int cards) {
  if (ranks <= cards) return {};
  return sentence("ranks is ",
                  ranks,
                  ", and there ",
                  cards == 1 ? "is " : "are ",
                  cards,
                  cards == 1 ? " card" : " cards",
                  ": ranks that are processes need a card each; ranks that are threads may share");
}

int card_of_process(int rank, int ranks, int cards) {
  if (cards == 1) return 0;
  const std::string why_not = why_not_a_card_each(ranks, cards);
  require(why_not.empty(), ErrorCode::kUnsupportedMachine, why_not);
  return rank;
}

void require_cards_apart(const std::vector<std::string>& places) {
  const std::set<std::string> cards(places.begin(), places.end());
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    for (std::size_t other = 0; other < rank; ++other)
      require(places[rank] != places[other],
              ErrorCode::kUnsupportedMachine,
              "ranks ",
              other,
              " and ",
              rank,
              " are both on card ",
              places[rank],
              ": ",
              places.size(),
              " ranks that are processes need a card each, and have ",
              cards.size());
}

std::vector<CardShare> share_cards(const std::vector<CardWish>& wishes,
                                   const std::vector<int>& sms_of_card) {
  std::vector<CardShare> shares(wishes.size());
  for (std::size_t card = 0; card < sms_of_card.size(); ++card) {
    const CardLoad load = load_of(static_cast<int>(card), wishes);
    const int sms = sms_of_card[card];
    const int least = load.asked + load.sharers;
    require(least <= sms,
            ErrorCode::kInvalidArgument,
            load.ranks.empty() ? "" : rank_list(load.ranks),
            load.ranks.size() == 1 ? " needs" : " need",
            load.asked > 0 ? "" : " at least",
            " ",
            least,
            " SMs of card ",
            card,
            "; it has ",
            sms);
    const int even = load.sharers > 0 ? (sms - load.asked) / load.sharers : 0;
    for (const int rank : load.ranks) {
      const auto index = static_cast<std::size_t>(rank);
      shares[index] = {.num_sms = wishes[index].num_sms > 0 ? wishes[index].num_sms : even,
                       .is_alone = load.ranks.size() == 1};
    }
  }
  return shares;
}

std::string text_of(const CardWish& wish) {
  return sentence(wish.card, " ", wish.num_sms);
}

CardWish card_wish_of(const std::string& text) {
  CardWish wish;
  std::istringstream in(text);
  MEGAMOE_CHECK(in >> wish.card >> wish.num_sms);
  return wish;
}

}  // namespace megamoe
