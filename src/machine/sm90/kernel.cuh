#pragma once

#include "machine/cuda/roles/dispatch.cuh"
#include "machine/cuda/roles/load_tokens.cuh"
#include "machine/cuda/roles/load_weights.cuh"
#include "machine/sm90/block_tokens.cuh"
#include "machine/sm90/block_weights.cuh"
#include "machine/sm90/roles/math.cuh"

// The entry: shared memory, barriers, registers, and which warp plays which role. The math
// warpgroups come first; the last warpgroup's warps are the weight loader, the token loader and two
// dispatch teams.
namespace megamoe::sm90 {

template <Plan kPlan>
MEGAMOE_DEVICE void prologue(const Context<kPlan>& here) {
  constexpr int kMathWarps = kPlan.math_warpgroups * 4;
  gpu::start_worker(here, kRowsUnderWay);
  if (threadIdx.x == 0) {
    init_ring<Stage<kPlan>, kPlan.stages>(here.stages(), 2, kMathWarps);
    init_ring<FeedSlot, kFeedSlots>(here.feed(), 1, kMathWarps + 1);
    init_ring<HeaderSlot<kPlan>, kFeedSlots>(here.headers(), 1, kMathWarps);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
}

// `Choice::kPlan` names the kernel. (nvcc writes a host stub that it can't compile when the plan
// itself is the argument and lives in a namespace.)
template <class Choice>
__global__ void __launch_bounds__(Choice::kPlan.threads(), 1)
    mega_moe(const __grid_constant__ KernelArgs args) {
  constexpr Plan kPlan = Choice::kPlan;
  const Context<kPlan> here{{args, Context<kPlan>::shared_base()}};
  prologue(here);
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroupThreads;
  if (warpgroup < kPlan.math_warpgroups) {
    ptx::registers_up_to<kPlan.registers.math>();
    auto m = Teams<kPlan>::template now<Role::kCompute>(here);
    math(here, m);
    if (threadIdx.x == 0 && args.options.times != nullptr)
      args.options.times[blockIdx.x].end = ptx::global_nanoseconds();
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
  } else {
    auto m = Teams<kPlan>::template now<Role::kDispatch>(here);
    gpu::dispatch_rows(here, m);
  }
}

}  // namespace megamoe::sm90
