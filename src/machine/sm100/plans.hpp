#pragma once

#include <array>

#include "machine/sm100/shared.hpp"

// The kernels that are built ahead of time, one for each tile size.
namespace megamoe::sm100 {

inline constexpr std::array kBlockSizes = {16, 32, 64, 96, 128, 192};

// The largest problem that every kernel has shared memory for: pulled rows and expert counts.
inline constexpr Problem kWidestProblem = {.experts = kMaxExperts, .hidden = 8192};

// Left to whoever runs a kernel with static shared memory of their own beside it, as the emulation
// on Hopper does.
inline constexpr int kSharedMemorySpare = 2048;
inline constexpr int kSharedMemoryUsed = gpu::kSharedMemoryLimit - kSharedMemorySpare;

// Sixteen tokens are one chunk, for one warpgroup; more are shared by two.
constexpr Plan without_stages(int block_m) {
  return {.block_m = block_m,
          .epilogue_warpgroups = block_m <= 16 ? 1 : 2,
          .stages = 2,
          .registers = block_m <= 16 ? RegisterBudget{112, 88, 168} : RegisterBudget{96, 72, 168}};
}

// As many stages as fit beside the rest of the storage and the widest tail.
template <int kBlockM>
constexpr Plan plan_for() {
  constexpr Plan kTwoStages = without_stages(kBlockM);
  constexpr int kStorage = sizeof(SharedStorage<kTwoStages>);
  constexpr int kEnd = shared_tail(kStorage, kWidestProblem).end;
  Plan plan = kTwoStages;
  plan.stages += (kSharedMemoryUsed - kEnd) / static_cast<int>(sizeof(Stage<kTwoStages>));
  return plan;
}

template <int kBlockM>
struct Choice {
  static constexpr Plan kPlan = gpu::checked(plan_for<kBlockM>());
};

}  // namespace megamoe::sm100
