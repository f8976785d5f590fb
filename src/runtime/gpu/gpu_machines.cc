#include "base/check.hpp"
#include "runtime/gpu/cards.hpp"
#include "runtime/gpu/gpu_kind.hpp"
#include "runtime/gpu/gpu_machine.hpp"
#include "runtime/gpu/gpu_rank_machine.hpp"
#include "runtime/gpu/placement.hpp"
#include "runtime/gpu/window_memory.hpp"

namespace megamoe {

std::string why_no_gpu_machine(const GpuKind& kind) {
  if (std::string why = why_no_kernels(kind); !why.empty()) return why;
  if (const std::string why = why_no_cards(); !why.empty())
    return sentence("machine ", kind.name, " finds no GPU here: ", why);
  return why_no_card(kind, visible_cards());
}

std::string why_no_gpu_processes(int ranks) {
  const std::string why_no = why_no_windows();
  return why_no.empty() ? why_not_a_card_each(ranks, static_cast<int>(visible_cards().size()))
                        : why_no;
}

std::unique_ptr<RankMachine> make_gpu_machine(const GpuKind& kind,
                                              const LayerOptions& options,
                                              const RankPlace& place) {
  return std::make_unique<GpuRankMachine>(kind, options, place);
}

Limits limits_of_gpu_machine(const GpuKind& kind, const LayerOptions& options) {
  return GpuRankMachine::limits_for(kind, options);
}

CardSurvey survey_cards() {
  CardSurvey survey{.versions = versions_text(), .cards = {}};
  const std::vector<CardFacts> cards = visible_cards();
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const CardFacts& facts = cards[i];
    Card card{.name = facts.name,
              .sms = facts.sms,
              .memory = facts.memory,
              .capability = sentence(facts.major, ".", facts.minor),
              .unreachable = {}};
    for (std::size_t other = 0; other < cards.size(); ++other)
      if (other != i && !why_not_peers(static_cast<int>(i), static_cast<int>(other)).empty())
        card.unreachable.push_back(static_cast<int>(other));
    survey.cards.push_back(card);
  }
  return survey;
}

}  // namespace megamoe
