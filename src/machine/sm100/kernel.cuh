#pragma once

#include "machine/cuda/roles/dispatch.cuh"
#include "machine/cuda/roles/load_tokens.cuh"
#include "machine/cuda/roles/load_weights.cuh"
#include "machine/sm100/block_tokens.cuh"
#include "machine/sm100/block_weights.cuh"
#include "machine/sm100/roles/epilogue.cuh"
#include "machine/sm100/roles/multiply.cuh"

// The entry: shared memory, barriers, tensor memory, registers, and which warp plays which role.
namespace megamoe::sm100 {

template <Plan kPlan>
MEGAMOE_DEVICE void init_barriers(const Context<kPlan>& here) {
  constexpr int kEpilogueWarps = kPlan.epilogue_warps();
  init_ring<Stage<kPlan>, kPlan.stages>(here.stages(), 2, 1);
  for (int i = 0; i < kPlan.stages; ++i)
    ptx::mbarrier_init(here.stages() + i * sizeof(Stage<kPlan>) + offsetof(Stage<kPlan>, peer_full),
                       1);
  // Readers of the feed: the token loader, multiply, and the epilogue.
  init_ring<FeedSlot, kFeedSlots>(here.feed(), 1, kEpilogueWarps + 2);
  init_ring<HeaderSlot<kPlan>, kFeedSlots>(here.headers(), 1, kEpilogueWarps);
  init_ring<AccumulatorSlot, kAccumulators>(here.accumulators(), 1, kPairCtas * kEpilogueWarps);
  ptx::fence_mbarrier_init();
}

template <Plan kPlan>
MEGAMOE_DEVICE void prologue(const Context<kPlan>& here, int warp) {
  gpu::start_worker(here, kRowsUnderWay);
  if (threadIdx.x == 0) init_barriers(here);
  if (warp == RoleWarps<kPlan>::first(Role::kMultiply))
    tcgen05::allocate<kPlan.columns().allocated()>(here.tmem_word());
  // Barriers of both CTAs stand before either reaches into the other's.
  tcgen05::fence_before_telling();
  __syncwarp();
  ptx::cluster_sync();
  tcgen05::fence_after_being_told();
}

// All roles of both CTAs are done: nobody reaches into the other's shared or tensor memory.
template <Plan kPlan>
MEGAMOE_DEVICE void leave(const Context<kPlan>& here, int warp) {
  tcgen05::fence_before_telling();
  __syncwarp();
  ptx::cluster_sync();
  tcgen05::fence_after_being_told();
  if (warp == RoleWarps<kPlan>::first(Role::kMultiply))
    tcgen05::deallocate<kPlan.columns().allocated()>(ptx::load_shared_u32(here.tmem_word()));
}

// The warps of the issuing warpgroup.
template <Plan kPlan>
MEGAMOE_DEVICE void issue(const Context<kPlan>& here, int warp) {
  using Warps = RoleWarps<kPlan>;
  if (warp == Warps::first(Role::kLoadWeights)) {
    auto m = Teams<kPlan>::template now<Role::kLoadWeights>(here);
    gpu::load_weights<BlockWeights<kPlan>>(here, m);
  } else if (warp == Warps::first(Role::kLoadTokens)) {
    auto m = Teams<kPlan>::template now<Role::kLoadTokens>(here);
    gpu::load_tokens<BlockTokens<kPlan>>(here, m);
  } else if (warp == Warps::first(Role::kMultiply)) {
    auto m = Teams<kPlan>::template now<Role::kMultiply>(here);
    multiply(here, m);
  }
}

// `Choice::kPlan` names the kernel; grids are whole pairs of CTAs, clusters of two.
template <class Choice>
__global__ void __launch_bounds__(Choice::kPlan.threads(), 1)
    mega_moe(const __grid_constant__ KernelArgs args) {
  constexpr Plan kPlan = Choice::kPlan;
  const Context<kPlan> here{{args, Context<kPlan>::shared_base()}};
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  prologue(here, warp);
  const int warpgroup = warp / 4;
  if (warpgroup < kPlan.epilogue_warpgroups) {
    ptx::registers_up_to<kPlan.registers.epilogue>();
    auto m = Teams<kPlan>::template now<Role::kCompute>(here);
    epilogue(here, m);
    if (threadIdx.x == 0 && args.options.times != nullptr)
      args.options.times[blockIdx.x].end = ptx::global_nanoseconds();
  } else if (warpgroup == kPlan.epilogue_warpgroups) {
    ptx::registers_down_to<kPlan.registers.issue>();
    issue(here, warp);
  } else {
    ptx::registers_down_to<kPlan.registers.dispatch>();
    auto m = Teams<kPlan>::template now<Role::kDispatch>(here);
    gpu::dispatch_rows(here, m);
  }
  leave(here, warp);
}

}  // namespace megamoe::sm100
