#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/context.cuh"
#include "machine/cuda/pull_rows.cuh"
#include "machine/sm90/barriers.cuh"
#include "machine/sm90/kernel_args.hpp"
#include "machine/sm90/settle_rows.cuh"
#include "machine/sm90/shared.hpp"

// What every role is made of: the team's machine, the rings, and where things lie in shared memory.
namespace megamoe::sm90 {

using gpu::FedBlock;
using gpu::FeedConsumer;
using gpu::Role;

template <Plan kPlan>
using TileProducer = Producer<Stage<kPlan>, kPlan.stages>;
template <Plan kPlan>
using TileConsumer = Consumer<Stage<kPlan>, kPlan.stages>;
template <Plan kPlan>
using HeaderProducer = Producer<HeaderSlot<kPlan>, kFeedSlots>;

template <Plan kPlan>
struct Context : gpu::CtaContext<SharedStorage<kPlan>, KernelArgs> {
  using Storage = SharedStorage<kPlan>;

  // Of one warpgroup, as the next one.
  MEGAMOE_DEVICE std::uint32_t destinations(int warpgroup) const {
    return this->base + static_cast<std::uint32_t>(offsetof(Storage, staging) +
                                                   offsetof(EpilogueStaging<kPlan>, destinations) +
                                                   warpgroup * kPlan.block_m * sizeof(Bfloat16*));
  }
  MEGAMOE_DEVICE std::uint32_t staging(int warpgroup) const {
    return this->base +
           static_cast<std::uint32_t>(offsetof(Storage, staging) +
                                      warpgroup * sizeof(typename EpilogueStaging<kPlan>::Chunk));
  }
  MEGAMOE_DEVICE WeightLayout layout(Phase phase) const {
    return layout_of(this->args.call.problem, kPlan.operands, phase);
  }
  MEGAMOE_DEVICE SharedTail tail() const {
    return shared_tail(sizeof(Storage), this->args.call.problem);
  }
};

// The math warps come first, then the weight loader, the token loader and the dispatch teams.
template <Plan kPlan>
struct RoleWarps {
  static constexpr int kMathWarps = kPlan.math_warpgroups * 4;
  static constexpr int kTeamsOfWorker = kMathWarps + 2 + kDispatchTeams;
  static constexpr int kDispatchBarrier = static_cast<int>(CtaBarrier::kDispatch);
  static constexpr bool kIsPaired = false;

  static constexpr int first(Role role) {
    if (role == Role::kCompute) return 0;
    if (role == Role::kLoadWeights) return kMathWarps;
    return role == Role::kLoadTokens ? kMathWarps + 1 : kMathWarps + 2;
  }
  static constexpr int count(Role role) {
    if (role == Role::kCompute) return kMathWarps;
    return role == Role::kDispatch ? kDispatchTeams : 1;
  }
};

template <Plan kPlan>
using Teams = gpu::Teams<Context<kPlan>, RoleWarps<kPlan>, RowPulls<kPlan>>;
template <Plan kPlan, Role kRole>
using Team = typename Teams<kPlan>::template Team<kRole>;

// Steps along K, slabs and passes of a block: what loaders and multiply must agree on.
struct BlockShape {
  int steps;
  int slabs;

  MEGAMOE_DEVICE BlockShape(const WeightLayout& layout, int block_n)
      : steps(layout.steps()), slabs(layout.slabs_of(block_n)) {}
};

}  // namespace megamoe::sm90
