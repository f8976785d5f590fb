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
using HeaderProducer = Producer<HeaderSlot<kPlan>, kFeedSlots>;

// One CTA's view of its kernel: the argument, and the shared address of its storage, kept in a
// register. Roles that multiply have no registers to spare for more, and read what they need where
// it lies.
template <Plan kPlan>
struct Context {
  using Storage = SharedStorage<kPlan>;

  const KernelArgs& args;
  std::uint32_t base;

  MEGAMOE_DEVICE std::uint32_t stages() const { return base; }
  MEGAMOE_DEVICE std::uint32_t activations() const { return base + offsetof(Storage, activations); }
  MEGAMOE_DEVICE std::uint32_t outputs() const { return base + offsetof(Storage, outputs); }
  MEGAMOE_DEVICE std::uint32_t feed() const {
    return base + offsetof(Storage, control) + offsetof(Control<kPlan>, feed);
  }
  MEGAMOE_DEVICE std::uint32_t headers() const {
    return base + offsetof(Storage, control) + offsetof(Control<kPlan>, headers);
  }
  MEGAMOE_DEVICE std::uint32_t pulled(int team) const {
    return base + offsetof(Storage, control) + offsetof(Control<kPlan>, pulled) +
           team * kPullsInFlight * 8;
  }
  MEGAMOE_DEVICE std::byte* at(int offset) const { return storage() + offset; }
  MEGAMOE_DEVICE Control<kPlan>& control() const {
    return reinterpret_cast<Storage*>(storage())->control;
  }
  MEGAMOE_DEVICE WeightLayout layout(Phase phase) const {
    return layout_of(args.call.problem, kPlan.operands, phase);
  }
  MEGAMOE_DEVICE SharedTail tail() const { return shared_tail(sizeof(Storage), args.call.problem); }

 private:
  static MEGAMOE_DEVICE std::byte* storage() {
    extern __shared__ __align__(1024) std::byte dynamic_memory[];
    return dynamic_memory;
  }
};

// A block in a feed slot that is full.
struct FedBlock {
  std::uint32_t slot;

  MEGAMOE_DEVICE bool is_end() const { return rows() == 0; }
  MEGAMOE_DEVICE Phase phase() const {
    return static_cast<Phase>(ptx::load_shared_u8(field(offsetof(Block, phase))));
  }
  MEGAMOE_DEVICE int expert() const { return word(offsetof(Block, expert)); }
  MEGAMOE_DEVICE int n() const { return word(offsetof(Block, n)); }
  MEGAMOE_DEVICE int rows() const { return word(offsetof(Block, rows)); }
  MEGAMOE_DEVICE PoolBlock pool() const {
    return {word(offsetof(Block, pool) + offsetof(PoolBlock, index))};
  }
  // All of it, for the protocol.
  MEGAMOE_DEVICE Block whole() const {
    return {.phase = phase(),
            .expert = expert(),
            .m = word(offsetof(Block, m)),
            .n = n(),
            .rows = rows(),
            .pool = pool()};
  }

 private:
  MEGAMOE_DEVICE std::uint32_t field(std::size_t offset) const {
    return slot + static_cast<std::uint32_t>(offsetof(FeedSlot, block) + offset);
  }
  MEGAMOE_DEVICE int word(std::size_t offset) const {
    return static_cast<int>(ptx::load_shared_u32(field(offset)));
  }
};

enum class Role { kMath, kLoadWeights, kLoadTokens, kDispatch };

// A team's place in its role and its CTA: the math warps come first, then the weight loader, the
// token loader and the dispatch teams.
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
  static constexpr bool kFollowsRelay = kRole != Role::kDispatch;
  static constexpr int kRoleBarrier = static_cast<int>(CtaBarrier::kDispatch);

  const Context<kPlan>& here;

  MEGAMOE_DEVICE int team() const {
    return static_cast<int>(threadIdx.x) / kWarpThreads - kFirstWarp;
  }
  MEGAMOE_DEVICE std::uint64_t first_epoch() const { return here.control().words.first_epoch; }
  MEGAMOE_DEVICE RolesJoined* roles_joined() const { return &here.control().words.roles_joined; }
  MEGAMOE_DEVICE std::uint64_t* gate_seen() const { return &here.control().words.gate_seen; }
  MEGAMOE_DEVICE std::uint32_t* relay_has_left() const {
    return &here.control().words.relay_has_left;
  }
  // The dispatch role waits at every gate that anyone waits at.
  MEGAMOE_DEVICE bool relays_gate() const { return kRole == Role::kDispatch && team() == 0; }
  MEGAMOE_DEVICE std::uint32_t* role_counts() const {
    return reinterpret_cast<std::uint32_t*>(here.at(here.tail().role_counts));
  }
};

template <Plan kPlan, Role kRole>
using Team = gpu::WarpTeam<RolePlace<kPlan, kRole>, RowPulls<kPlan>>;

// Steps along K, slabs and passes of a block: what loaders and multiply must agree on.
struct BlockShape {
  int steps;
  int slabs;

  MEGAMOE_DEVICE BlockShape(const WeightLayout& layout, int block_n)
      : steps(layout.steps()), slabs(layout.slabs_of(block_n)) {}
};

}  // namespace megamoe::sm90
