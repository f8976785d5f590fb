#pragma once

#include <memory>
#include <string>

#include "megamoe/card.hpp"
#include "runtime/gpu/gpu_kind.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

// The GPU machines of this build. One of two units is compiled: with CUDA, or one that has none.

/// Why a machine of this kind can't run here; empty when it can. May start the CUDA driver in
/// this process, which must not fork afterwards.
std::string why_no_gpu_machine(const GpuKind& kind);

/// Of a machine that can run here: why `ranks` ranks that are processes started from here can't
/// have it; empty when they can.
std::string why_no_gpu_processes(int ranks);

/// Only of a machine that can run here.
std::unique_ptr<RankMachine> make_gpu_machine(const GpuKind& kind,
                                              const LayerOptions& options,
                                              const RankPlace& place);
Limits limits_of_gpu_machine(const GpuKind& kind, const LayerOptions& options);

/// The cards that this process sees, and the versions of what drives them.
struct CardSurvey {
  std::string versions;
  std::vector<Card> cards;
};
CardSurvey survey_cards();

}  // namespace megamoe
