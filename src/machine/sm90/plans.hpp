#pragma once

#include <array>

#include "machine/sm90/shared.hpp"

// The kernels that are built ahead of time, one for each tile size and operand kind.
namespace megamoe::sm90 {

inline constexpr std::array kBlockSizes = {8, 16, 32, 64, 96, 128, 160};

// The largest problem that every kernel has shared memory for: pulled rows and expert counts.
inline constexpr Problem kWidestProblem = {.experts = kMaxExperts, .hidden = 8192};

// Four warpgroups of 64 rows up to 32 tokens, where memory is the limit; two above, where the sums
// need the registers.
constexpr Plan without_stages(Operands operands, int block_m) {
  return {.operands = operands,
          .block_m = block_m,
          .math_warpgroups = block_m <= 32 ? 4 : 2,
          .stages = 2,
          .registers = block_m <= 32   ? RegisterBudget{96, 96}
                       : block_m <= 96 ? RegisterBudget{120, 192}
                                       : RegisterBudget{96, 200}};
}

// As many stages as fit beside the rest of the storage and the widest tail.
template <Operands kOperands, int kBlockM>
constexpr Plan plan_for() {
  constexpr Plan kTwoStages = without_stages(kOperands, kBlockM);
  constexpr int kStorage = sizeof(SharedStorage<kTwoStages>);
  constexpr int kEnd = shared_tail(kStorage, kWidestProblem).end;
  Plan plan = kTwoStages;
  plan.stages += (kSharedMemoryLimit - kEnd) / static_cast<int>(sizeof(Stage<kTwoStages>));
  return plan;
}

template <Operands kOperands, int kBlockM>
struct Choice {
  static constexpr Plan kPlan = gpu::checked(plan_for<kOperands, kBlockM>());
};

}  // namespace megamoe::sm90
