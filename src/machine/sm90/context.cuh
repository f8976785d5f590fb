#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/pipe.cuh"
#include "machine/cuda/team.cuh"
#include "machine/sm90/barriers.cuh"
#include "machine/sm90/kernel_args.hpp"
#include "machine/sm90/pull_rows.cuh"
#include "machine/sm90/shared.hpp"

// What every role is made of: the team's machine, the rings, and where things lie in shared memory.
namespace megamoe::sm90 {

template <Plan kPlan>
using TileProducer = Producer<Stage<kPlan>, kPlan.stages>;
template <Plan kPlan>
using TileConsumer = Consumer<Stage<kPlan>, kPlan.stages>;
using FeedProducer = Producer<FeedSlot, kFeedSlots>;
using FeedConsumer = Consumer<FeedSlot, kFeedSlots>;
template <Plan kPlan>
using HeaderProducer = Producer<HeaderSlot<kPlan>, kHeaderSlots>;
template <Plan kPlan>
using HeaderConsumer = Consumer<HeaderSlot<kPlan>, kHeaderSlots>;

// One CTA's view of its kernel. `base` is the shared address of `shared`, kept in a register.
template <Plan kPlan>
struct Context {
  const KernelArgs& args;
  SharedStorage<kPlan>& shared;
  std::uint32_t base;

  MEGAMOE_DEVICE std::uint32_t stages() const { return base; }
  MEGAMOE_DEVICE std::uint32_t feed() const {
    return base + offsetof(SharedStorage<kPlan>, control) + offsetof(Control<kPlan>, feed);
  }
  MEGAMOE_DEVICE std::uint32_t headers() const {
    return base + offsetof(SharedStorage<kPlan>, control) + offsetof(Control<kPlan>, headers);
  }
  MEGAMOE_DEVICE std::uint32_t pulled(int team) const {
    return base + offsetof(SharedStorage<kPlan>, control) + offsetof(Control<kPlan>, pulled) +
           team * kPullsInFlight * 8;
  }
  MEGAMOE_DEVICE Control<kPlan>& control() const { return shared.control; }
  MEGAMOE_DEVICE WeightLayout layout(Phase phase) const {
    return layout_of(args.call.problem, kPlan.operands, phase);
  }
  MEGAMOE_DEVICE SharedTail tail() const {
    return shared_tail(sizeof(SharedStorage<kPlan>), args.call.problem);
  }
  MEGAMOE_DEVICE std::byte* at(int offset) const {
    return reinterpret_cast<std::byte*>(&shared) + offset;
  }
};

enum class Role { kMath, kLoadWeights, kLoadTokens, kDispatch };

// A team's place in its role and its CTA: the math warps come first, then the weight loader, the token loader and the
// dispatch teams.
template <Plan kPlan, Role kRole>
struct RolePlace {
  static constexpr int kMathWarps = kPlan.math_warpgroups * 4;
  static constexpr int kFirstWarp = kRole == Role::kMath          ? 0
                                    : kRole == Role::kLoadWeights ? kMathWarps
                                    : kRole == Role::kLoadTokens  ? kMathWarps + 1
                                                                  : kMathWarps + 2;
  static constexpr int kTeams = kRole == Role::kMath       ? kMathWarps
                                : kRole == Role::kDispatch ? kDispatchTeams
                                                           : 1;
  static constexpr int kTeamsOfWorker = kMathWarps + 2 + kDispatchTeams;
  static constexpr int kRoleBarrier = static_cast<int>(CtaBarrier::kDispatch);

  const Context<kPlan>& here;

  MEGAMOE_DEVICE int team() const {
    return static_cast<int>(threadIdx.x) / kWarpThreads - kFirstWarp;
  }
  MEGAMOE_DEVICE std::uint64_t first_epoch() const { return here.control().first_epoch; }
  MEGAMOE_DEVICE RolesJoined* roles_joined() const { return &here.control().roles_joined; }
  MEGAMOE_DEVICE std::uint32_t* role_counts() const {
    return reinterpret_cast<std::uint32_t*>(here.at(here.tail().role_counts));
  }
};

template <Plan kPlan, Role kRole>
using Team = gpu::WarpTeam<RolePlace<kPlan, kRole>, RowPulls<kPlan>>;

// The block in a feed slot that is full.
template <Plan kPlan>
MEGAMOE_DEVICE Block block_in(const Context<kPlan>& here, std::uint32_t slot) {
  const auto* slots = reinterpret_cast<const std::byte*>(here.control().feed);
  return reinterpret_cast<const FeedSlot*>(slots + (slot - here.feed()))->block;
}

MEGAMOE_DEVICE bool is_end(const Block& block) { return block.rows == 0; }

// Steps along K, slabs and passes of a block: what loaders and multiply must agree on.
struct BlockShape {
  int steps;
  int slabs;

  MEGAMOE_DEVICE BlockShape(const WeightLayout& layout, const Block& block)
      : steps(layout.steps()), slabs(layout.slabs_of(block.n)) {}
};

}  // namespace megamoe::sm90
