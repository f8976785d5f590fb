#pragma once

#include <algorithm>
#include <array>

#include "base/math.hpp"
#include "machine/cuda/card.hpp"
#include "machine/cuda/checked_plan.hpp"
#include "machine/sm90/fragment.hpp"
#include "machine/sm90/pool_tile.hpp"

namespace megamoe::sm90 {

using gpu::kRegisterFile;
using gpu::kSharedMemoryLimit;
using gpu::kWarpgroupThreads;
using gpu::kWarpThreads;

// `setmaxnreg` of the two kinds of warpgroup. What the launch gave a CTA is all there is to share.
struct RegisterBudget {
  int issue;
  int math;
  bool operator==(const RegisterBudget&) const = default;
};

// Everything that changes the code of the kernel. One warpgroup issues (weight loader, token
// loader, two dispatch warps); the others multiply, 64 weight rows each.
struct Plan {
  Operands operands;
  int block_m;  // tokens of a tile
  int math_warpgroups;
  int stages;
  RegisterBudget registers;

  bool operator==(const Plan&) const = default;

  constexpr int math_threads() const { return math_warpgroups * kWarpgroupThreads; }
  constexpr int threads() const { return math_threads() + kWarpgroupThreads; }
  // A block is 256 weight rows; with two math warpgroups they are taken in two passes over K.
  constexpr int passes() const { return kBlockSlabs / math_warpgroups; }
  // Few tokens: the next step is decoded while this one multiplies, at the price of a second set of
  // registers. Many tokens: the warpgroups hide each other's decode instead.
  constexpr bool decodes_ahead() const { return operands == Operands::kFloat8 && block_m <= 32; }
  // Tokens that a block may be multiplied by, from few to all of the tile. Narrow tiles wait for
  // memory whatever their width.
  constexpr int width(int index) const {
    constexpr int kWidths[] = {64, 96, 128, 160};
    if (block_m <= 64) return block_m;
    return kWidths[index] < block_m ? kWidths[index] : block_m;
  }
  constexpr int tile_bytes() const { return token_tile_bytes(operands, block_m); }
  constexpr int weight_bytes() const { return math_warpgroups * slab_bytes(operands); }
  constexpr int launch_registers() const {
    return std::min(kRegisterFile / threads() / 8 * 8, 248);
  }
};

// What a stage takes in shared memory, by arithmetic; SharedStorage is held to it.
constexpr int stage_bytes(const Plan& plan) {
  constexpr int kTwoBarriers = 16;
  const int weights_end = align_up(plan.tile_bytes(), 128) + plan.weight_bytes();
  return align_up(align_up(weights_end, 16) + kTwoBarriers, 1024);
}

// Tokens that an epilogue takes at a time: what the math warps' registers hold besides the tile's
// sums.
constexpr int epilogue_tokens(const Plan& plan) {
  return std::min(plan.block_m, plan.math_warpgroups == 4 ? 16 : 32);
}

constexpr const char* what_is_wrong(const Plan& plan) {
  if (plan.block_m < 8 || plan.block_m % 8 != 0) return "block_m: wgmma takes multiples of 8";
  if (plan.block_m > 160) return "block_m: sums of more than 160 tokens don't fit the registers";
  if (plan.math_warpgroups != 2 && plan.math_warpgroups != 4)
    return "math_warpgroups: a block of four slabs is cut in one or two passes";
  if (plan.stages < 2) return "stages: a pipeline needs two";
  const int budget =
      plan.registers.issue * kWarpgroupThreads + plan.registers.math * plan.math_threads();
  if (budget > plan.launch_registers() * plan.threads())
    return "registers: more than the launch gives";
  if (plan.registers.issue % 8 != 0 || plan.registers.math % 8 != 0)
    return "registers: setmaxnreg takes multiples of 8";
  return nullptr;
}

}  // namespace megamoe::sm90
