#pragma once

#include "machine/sm90/kernel.cuh"

// The kernel without dispatch and combine: both linears over rows that already lie in the pool, whose counts the
// host has set. For timing, and for finding out which half of a failing call is wrong.
namespace megamoe::test {

template <class Choice>
__global__ void __launch_bounds__(Choice::kPlan.threads(), 1)
    linears(const __grid_constant__ sm90::KernelArgs args) {
  using namespace sm90;
  constexpr Plan kPlan = Choice::kPlan;
  extern __shared__ __align__(1024) std::byte dynamic_memory[];
  const Context<kPlan> here{args,
                            *reinterpret_cast<SharedStorage<kPlan>*>(dynamic_memory),
                            ptx::opaque(ptx::shared_address(dynamic_memory))};
  prologue(here);
  // The gate is open before any role asks: the host counts on one barrier having been passed.
  if (threadIdx.x == 0) here.control().first_epoch -= 1;
  __syncthreads();
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroupThreads;
  if (warpgroup < kPlan.math_warpgroups) {
    ptx::registers_up_to<kPlan.registers.math>();
    auto m = team_of<Role::kMath>(here);
    const MathPlace place{warpgroup, static_cast<int>(threadIdx.x) % kWarpgroupThreads};
    (void)MathRole<kPlan>(here, m, place).run();
    return;
  }
  ptx::registers_down_to<kPlan.registers.issue>();
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  if (warp == RolePlace<kPlan, Role::kLoadWeights>::kFirstWarp) {
    auto m = team_of<Role::kLoadWeights>(here);
    load_weights(here, m);
  } else if (warp == RolePlace<kPlan, Role::kLoadTokens>::kFirstWarp) {
    auto m = team_of<Role::kLoadTokens>(here);
    load_tokens(here, m);
  }
}

}  // namespace megamoe::test
