#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/context.cuh"
#include "machine/cuda/pull_rows.cuh"
#include "machine/sm100/kernel_args.hpp"
#include "machine/sm100/row_store.cuh"
#include "machine/sm100/shared.hpp"

// What every role is made of: the team's machine, the rings, and where things lie in shared memory.
namespace megamoe::sm100 {

using gpu::FedBlock;
using gpu::FeedConsumer;
using gpu::Role;
using AccumulatorProducer = Producer<AccumulatorSlot, kAccumulators, true>;
using AccumulatorConsumer = Consumer<AccumulatorSlot, kAccumulators>;

template <Plan kPlan>
using TileProducer = Producer<Stage<kPlan>, kPlan.stages>;
template <Plan kPlan>
using TileConsumer = Consumer<Stage<kPlan>, kPlan.stages>;
template <Plan kPlan>
using HeaderConsumer = Consumer<HeaderSlot<kPlan>, kFeedSlots>;

// The CTA of a pair whose thread issues for both.
inline constexpr std::uint32_t kLeader = 0;

template <Plan kPlan>
struct Context : gpu::CtaContext<SharedStorage<kPlan>, KernelArgs> {
  using Storage = SharedStorage<kPlan>;

  MEGAMOE_DEVICE std::uint32_t staging(int warpgroup) const {
    return this->base + offsetof(Storage, staging) +
           static_cast<std::uint32_t>(warpgroup) * sizeof(RowStaging);
  }
  MEGAMOE_DEVICE std::uint32_t accumulators() const {
    return this->in_control(offsetof(Control<kPlan>, accumulators));
  }
  MEGAMOE_DEVICE std::uint32_t tmem_word() const {
    return this->in_control(offsetof(Control<kPlan>, tmem));
  }
  MEGAMOE_DEVICE WeightLayout layout(Phase phase) const {
    return layout_of(this->args.call.problem, phase);
  }
  MEGAMOE_DEVICE gpu::SharedTail tail() const {
    return shared_tail(sizeof(Storage), this->args.call.problem);
  }
};

// Named barriers of a CTA. Id 0 belongs to __syncthreads.
enum class CtaBarrier : int {
  kDispatch = 1,
  kWarpgroup,  // one epilogue warpgroup: this id and the one that follows
};

// The epilogue's warpgroups come first, as a warp reads the quarter of tensor memory that its
// number names; then weight loader, token loader, multiply, an idle warp; then dispatch.
template <Plan kPlan>
struct RoleWarps {
  static constexpr int kEpilogueWarps = kPlan.epilogue_warps();
  static constexpr int kTeamsOfWorker = kEpilogueWarps + 2 + kDispatchTeams;
  static constexpr int kDispatchBarrier = static_cast<int>(CtaBarrier::kDispatch);
  static constexpr bool kIsPaired = true;

  static constexpr int first(Role role) {
    if (role == Role::kCompute) return 0;
    if (role == Role::kLoadWeights) return kEpilogueWarps;
    if (role == Role::kLoadTokens) return kEpilogueWarps + 1;
    return role == Role::kMultiply ? kEpilogueWarps + 2 : kEpilogueWarps + 4;
  }
  static constexpr int count(Role role) {
    if (role == Role::kDispatch) return kDispatchTeams;
    return role == Role::kCompute ? kEpilogueWarps : 1;
  }
};

template <Plan kPlan>
using Teams =
    gpu::Teams<Context<kPlan>, RoleWarps<kPlan>, gpu::RowPulls<RowStore<kPlan>, kPullsInFlight>>;
// A warp in its role.
template <Plan kPlan, Role kRole>
using Team = typename Teams<kPlan>::template Team<kRole>;

}  // namespace megamoe::sm100
