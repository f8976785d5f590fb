#pragma once

#include "machine/sm90/kernel.cuh"

// The kernel without dispatch and combine: both linears over rows that already lie in the pool,
// whose counts the host has set. For timing, and for finding out which half of a failing call is
// wrong.
namespace megamoe::test {

// Clocks that each worker's first math thread spends multiplying and storing, by phase.
struct ClockProbe {
  std::uint64_t* clocks;  // [linear 1 multiply, store, linear 2 multiply, store]
  long long last;

  MEGAMOE_DEVICE void multiplied(Phase phase) { note(phase == Phase::kLinear1 ? 0 : 2); }
  MEGAMOE_DEVICE void stored(Phase phase) { note(phase == Phase::kLinear1 ? 1 : 3); }

 private:
  MEGAMOE_DEVICE void note(int what) {
    if (clocks == nullptr || threadIdx.x != 0) return;
    const long long now = clock64();
    clocks[what] += static_cast<std::uint64_t>(now - last);
    last = now;
  }
};

template <class Choice>
__global__ void __launch_bounds__(Choice::kPlan.threads(), 1)
    linears(const __grid_constant__ sm90::KernelArgs args) {
  using namespace sm90;
  constexpr Plan kPlan = Choice::kPlan;
  const Context<kPlan> here{{args, Context<kPlan>::shared_base()}};
  prologue(here);
  // Both gates that the roles ask for are open.
  if (threadIdx.x == 0) here.control().words.first_epoch -= 2;
  __syncthreads();
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroupThreads;
  if (warpgroup < kPlan.math_warpgroups) {
    ptx::registers_up_to<kPlan.registers.math>();
    auto m = Teams<kPlan>::template now<Role::kCompute>(here);
    std::uint64_t* clocks =
        args.options.times == nullptr ? nullptr : args.options.times[blockIdx.x].milestones;
    MathRole<kPlan, ClockProbe>(here, m, {clocks, clock64()}).run();
    return;
  }
  ptx::registers_down_to<kPlan.registers.issue>();
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  if (warp == RoleWarps<kPlan>::first(Role::kLoadWeights)) {
    auto m = Teams<kPlan>::template now<Role::kLoadWeights>(here);
    gpu::load_weights<BlockWeights<kPlan>>(here, m);
  } else if (warp == RoleWarps<kPlan>::first(Role::kLoadTokens)) {
    auto m = Teams<kPlan>::template now<Role::kLoadTokens>(here);
    gpu::load_tokens<BlockTokens<kPlan>>(here, m);
  }
}

}  // namespace megamoe::test
