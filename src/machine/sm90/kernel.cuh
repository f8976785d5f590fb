#pragma once

#include "machine/sm90/roles/dispatch.cuh"
#include "machine/sm90/roles/load_tokens.cuh"
#include "machine/sm90/roles/load_weights.cuh"
#include "machine/sm90/roles/math.cuh"

// The entry: shared memory, barriers, registers, and which warp plays which role. The math
// warpgroups come first; the last warpgroup's warps are the weight loader, the token loader and two
// dispatch teams.
namespace megamoe::sm90 {

template <Plan kPlan>
MEGAMOE_DEVICE void prologue(const Context<kPlan>& here) {
  constexpr int kMathWarps = kPlan.math_warpgroups * 4;
  const Call& call = here.args.call;
  auto* counts = reinterpret_cast<std::uint32_t*>(here.at(here.tail().role_counts));
  for (int e = threadIdx.x; e < call.problem.experts; e += kPlan.threads())
    counts[e] = 0;
  if (threadIdx.x == 0) {
    init_ring<Stage<kPlan>, kPlan.stages>(here.stages(), 2, kMathWarps);
    init_ring<FeedSlot, kFeedSlots>(here.feed(), 1, kMathWarps + 1);
    init_ring<HeaderSlot<kPlan>, kFeedSlots>(here.headers(), 1, kMathWarps);
    for (int i = 0; i < kDispatchTeams * kPullsInFlight; ++i)
      ptx::mbarrier_init(here.pulled(0) + 8 * i, 1);
    for (int i = 0; i < ActivationStaging<kPlan>::kSets; ++i) {
      const std::uint32_t set = here.activations() + i * sizeof(ActivationSet<kPlan>);
      ptx::mbarrier_init(set + offsetof(ActivationSet<kPlan>, empty), 1);
      ptx::store_shared_u32(set + offsetof(ActivationSet<kPlan>, staged), 0);
    }
    ptx::fence_mbarrier_init();
    here.control().words.first_epoch = call.local(call.workspace.gate)->value;
    here.control().words.roles_joined.value = 0;
    here.control().words.gate_seen = here.control().words.first_epoch;
    here.control().words.relay_has_left = 0;
    here.control().words.is_abandoned = 0;
    for (FeedSlot& slot : here.control().feed)
      slot.finished_warps = 0;
    if (here.args.options.times != nullptr)
      here.args.options.times[blockIdx.x].start = ptx::global_nanoseconds();
  }
  __syncthreads();
}

template <Role kRole, Plan kPlan>
MEGAMOE_DEVICE Team<kPlan, kRole> team_of(const Context<kPlan>& here) {
  const RolePlace<kPlan, kRole> place{here};
  const int pulls_of = kRole == Role::kDispatch ? place.team() : 0;
  const SharedTail tail = here.tail();
  std::byte* rows = here.at(tail.pulls + pulls_of * kPullsInFlight * tail.pull_bytes);
  return {here.args.call, here.args.options, place, RowPulls<kPlan>(rows, here.pulled(pulls_of))};
}

// `Choice::kPlan` names the kernel. (nvcc writes a host stub that it can't compile when the plan
// itself is the argument and lives in a namespace.)
template <class Choice>
__global__ void __launch_bounds__(Choice::kPlan.threads(), 1)
    mega_moe(const __grid_constant__ KernelArgs args) {
  constexpr Plan kPlan = Choice::kPlan;
  extern __shared__ __align__(1024) std::byte dynamic_memory[];
  const Context<kPlan> here{args, ptx::opaque(ptx::shared_address(dynamic_memory))};
  prologue(here);
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroupThreads;
  if (warpgroup < kPlan.math_warpgroups) {
    ptx::registers_up_to<kPlan.registers.math>();
    auto m = team_of<Role::kMath>(here);
    math(here, m);
    if (threadIdx.x == 0 && args.options.times != nullptr)
      args.options.times[blockIdx.x].end = ptx::global_nanoseconds();
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
  } else {
    auto m = team_of<Role::kDispatch>(here);
    dispatch_rows(here, m);
  }
}

}  // namespace megamoe::sm90
