#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/card.hpp"
#include "machine/cuda/pipe.cuh"
#include "machine/cuda/pull_place.hpp"
#include "machine/cuda/pull_rows.cuh"
#include "machine/cuda/team.cuh"
#include "machine/cuda/worker_memory.hpp"

// What the roles of a CTA are made of: where things lie in shared memory, and where a warp stands.
namespace megamoe::gpu {

using FeedProducer = Producer<FeedSlot, kFeedSlots>;
using FeedConsumer = Consumer<FeedSlot, kFeedSlots>;

// One CTA's view of its kernel: the argument, and the shared address of its storage, kept in a
// register. Roles that multiply have no registers to spare for more, and read what they need where
// it lies. `Storage` has `stages` first, and a `control` with `feed`, `headers`, `pulled` and
// `words`.
template <class Storage, class Args>
struct CtaContext {
  const Args& args;
  std::uint32_t base;

  static MEGAMOE_DEVICE std::uint32_t shared_base() {
    return ptx::opaque(ptx::shared_address(storage()));
  }
  MEGAMOE_DEVICE std::uint32_t stages() const { return base; }
  MEGAMOE_DEVICE std::uint32_t feed() const { return in_control(offsetof(Control, feed)); }
  MEGAMOE_DEVICE std::uint32_t headers() const { return in_control(offsetof(Control, headers)); }
  MEGAMOE_DEVICE std::uint32_t pulled(int team) const {
    constexpr auto kOfTeam = static_cast<int>(sizeof(Control::pulled[0]));
    return in_control(offsetof(Control, pulled)) + team * kOfTeam;
  }
  MEGAMOE_DEVICE std::byte* at(int offset) const { return storage() + offset; }
  MEGAMOE_DEVICE auto& control() const { return reinterpret_cast<Storage*>(storage())->control; }
  MEGAMOE_DEVICE WorkerWords& words() const { return control().words; }

 protected:
  using Control = decltype(Storage::control);
  MEGAMOE_DEVICE std::uint32_t in_control(std::size_t offset) const {
    return base + static_cast<std::uint32_t>(offsetof(Storage, control) + offset);
  }

 private:
  static MEGAMOE_DEVICE std::byte* storage() {
    extern __shared__ __align__(1024) std::byte dynamic_memory[];
    return dynamic_memory;
  }
};

// By all threads, before any role begins: the words and counts of the worker, and its barriers of
// pulls. Whoever calls it synchronises.
template <class Context>
MEGAMOE_DEVICE void start_worker(const Context& here, int num_pulls) {
  const Call& call = here.args.call;
  auto* counts = reinterpret_cast<std::uint32_t*>(here.at(here.tail().role_counts));
  for (int e = threadIdx.x; e < call.problem.experts; e += blockDim.x)
    counts[e] = 0;
  if (threadIdx.x != 0) return;
  for (int i = 0; i < num_pulls; ++i)
    ptx::mbarrier_init(here.pulled(0) + 8 * i, 1);
  WorkerWords& words = here.words();
  words.first_epoch = call.local(call.workspace.gate)->value;
  words.roles_joined.value = 0;
  words.gate_seen = words.first_epoch;
  words.relay_has_left = 0;
  words.is_abandoned = 0;
  for (FeedSlot& slot : here.control().feed)
    slot.finished_warps = 0;
  if (here.args.options.times != nullptr)
    here.args.options.times[blockIdx.x].start = ptx::global_nanoseconds();
}

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

// kCompute is the protocol's compute role: on SM90 it multiplies too, on SM100 it finishes what
// kMultiply multiplied.
enum class Role { kCompute, kMultiply, kLoadWeights, kLoadTokens, kDispatch };

// A team's place in its role and its CTA. `Warps` says which warps play which role, and whether the
// CTA is one of a pair: then the pair's first CTA relays the gate for both.
template <class Context, class Warps, Role kRole>
struct RolePlace {
  static constexpr int kFirstWarp = Warps::first(kRole);
  static constexpr int kTeams = Warps::count(kRole);
  static constexpr int kTeamsOfWorker = Warps::kTeamsOfWorker;
  static constexpr bool kFollowsRelay = kRole != Role::kDispatch;
  static constexpr int kRoleBarrier = Warps::kDispatchBarrier;
  static constexpr bool kIsPaired = Warps::kIsPaired;

  const Context& here;

  MEGAMOE_DEVICE int team() const {
    return static_cast<int>(threadIdx.x) / kWarpThreads - kFirstWarp;
  }
  MEGAMOE_DEVICE std::uint64_t first_epoch() const { return here.words().first_epoch; }
  MEGAMOE_DEVICE RolesJoined* roles_joined() const { return &here.words().roles_joined; }
  MEGAMOE_DEVICE std::uint64_t* gate_seen() const { return &here.words().gate_seen; }
  MEGAMOE_DEVICE std::uint32_t* relay_has_left() const { return &here.words().relay_has_left; }
  // The dispatch role waits at every gate that anyone waits at.
  MEGAMOE_DEVICE bool relays_gate() const {
    if (kRole != Role::kDispatch || team() != 0) return false;
    return !kIsPaired || ptx::cluster_rank() == 0;
  }
  MEGAMOE_DEVICE std::uint32_t* role_counts() const {
    return reinterpret_cast<std::uint32_t*>(here.at(here.tail().role_counts));
  }
};

// A machine's teams. `Pulls`: its RowPulls.
template <class Context, class Warps, class Pulls>
struct Teams {
  template <Role kRole>
  using Team = WarpTeam<RolePlace<Context, Warps, kRole>, Pulls>;

  // This warp's, which plays the role.
  template <Role kRole>
  static MEGAMOE_DEVICE Team<kRole> now(const Context& here) {
    const RolePlace<Context, Warps, kRole> place{here};
    const int pulls_of = kRole == Role::kDispatch ? place.team() : 0;
    const SharedTail tail = here.tail();
    std::byte* rows = here.at(tail.pulls + pulls_of * Pulls::kInFlight * tail.pull_bytes);
    return {here.args.call, here.args.options, place, Pulls(rows, here.pulled(pulls_of))};
  }
};

// This warp's stores are behind it. The last of the CTA's warps that work on the block tells who
// waits for it; the others go on to the next one.
template <class M>
MEGAMOE_DEVICE void finish_block(M& m, const Call& call, const FedBlock& block) {
  const std::uint32_t counter = block.slot + offsetof(FeedSlot, finished_warps);
  __syncwarp();
  std::uint32_t before = 0;
  if (m.lane() == 0) before = ptx::add_shared_u32(counter, 1);
  before = __shfl_sync(kAllLanes, before, 0);
  if (before == static_cast<std::uint32_t>(m.num_teams()) - 1) {
    signal_output(m, call, block.whole());
    if (m.lane() == 0) ptx::store_shared_u32(counter, 0);
  }
  __syncwarp();
}

}  // namespace megamoe::gpu
