#pragma once

#include <algorithm>

#include "machine/cuda/card.hpp"
#include "machine/cuda/checked_plan.hpp"
#include "machine/sm100/tmem_columns.hpp"

namespace megamoe::sm100 {

using gpu::kWarpgroupThreads;
using gpu::kWarpThreads;

// What `setmaxnreg` may hand out of an SM's registers; the rest stays with the hardware.
inline constexpr int kRegisterBudget = 64'512;

// Registers of a thread, by the kind of warpgroup.
struct RegisterBudget {
  int dispatch;
  int issue;
  int epilogue;
  bool operator==(const RegisterBudget&) const = default;
};

// Everything that changes the code of the kernel. The epilogue's warpgroups come first; then one
// that issues (weight loader, token loader, multiply, and an idle warp), then one of dispatch
// teams.
struct Plan {
  int block_m;  // tokens of a tile
  int epilogue_warpgroups;
  int stages;
  RegisterBudget registers;

  bool operator==(const Plan&) const = default;

  constexpr int epilogue_warps() const { return epilogue_warpgroups * 4; }
  constexpr int warpgroups() const { return epilogue_warpgroups + 2; }
  constexpr int threads() const { return warpgroups() * kWarpgroupThreads; }
  constexpr TmemColumns columns() const { return {block_m}; }
  // One CTA's share of the tokens.
  constexpr int half_tile_bytes() const { return block_m / kPairCtas * kRowBytes; }
  constexpr int registers_used() const {
    return kWarpgroupThreads *
           (registers.dispatch + registers.issue + epilogue_warpgroups * registers.epilogue);
  }
};

// Tokens that an epilogue warpgroup takes at a time, in turn with the others.
inline constexpr int kChunkTokens = 16;

constexpr const char* what_is_wrong(const Plan& plan) {
  if (plan.block_m < kTokenGranule || plan.block_m % kTokenGranule != 0)
    return "block_m: the instruction takes multiples of 16 tokens";
  if (plan.block_m > 192) return "block_m: two accumulators and scales don't fit 512 columns";
  if (plan.columns().used() > kTmemColumnLimit) return "block_m: too many columns of tensor memory";
  if (plan.epilogue_warpgroups != 1 && plan.epilogue_warpgroups != 2)
    return "epilogue_warpgroups: one or two";
  if (plan.epilogue_warpgroups * kChunkTokens > plan.block_m)
    return "epilogue_warpgroups: a chunk of tokens for each";
  if (plan.stages < 2) return "stages: a pipeline needs two";
  if (plan.registers_used() > kRegisterBudget) return "registers: more than an SM hands out";
  const RegisterBudget& r = plan.registers;
  if (r.dispatch % 8 != 0 || r.issue % 8 != 0 || r.epilogue % 8 != 0)
    return "registers: setmaxnreg takes multiples of 8";
  if (std::max({r.dispatch, r.issue, r.epilogue}) > 232 ||
      std::min({r.dispatch, r.issue, r.epilogue}) < 24)
    return "registers: setmaxnreg takes 24 to 232 here";
  return nullptr;
}

}  // namespace megamoe::sm100
