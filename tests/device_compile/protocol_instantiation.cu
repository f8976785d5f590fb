#include "machine/cuda/team.cuh"
#include "protocol/forward.hpp"

// Every template of the protocol on the CUDA machines' team, so that its one text stays device
// code. Nothing here runs.
namespace megamoe::test {

struct NoPulls {
  static constexpr int kInFlight = 2;
  MEGAMOE_DEVICE void begin(const Call&, const RowPull&, int) {}
  MEGAMOE_DEVICE void finish(const Call&, int) {}
};

struct CtaWords {
  RolesJoined roles_joined;
  std::uint64_t first_epoch;
  std::uint64_t gate_seen;
  std::uint32_t relay_has_left;
  std::uint32_t role_counts[kMaxExperts];
};

// Two teams of one role.
struct SomePlace {
  static constexpr int kTeams = 2;
  static constexpr int kTeamsOfWorker = 4;
  static constexpr int kRoleBarrier = 1;
  static constexpr bool kFollowsRelay = false;
  static constexpr bool kIsPaired = false;

  CtaWords* words;

  MEGAMOE_DEVICE int team() const { return static_cast<int>(threadIdx.x) / 32 % kTeams; }
  MEGAMOE_DEVICE std::uint64_t first_epoch() const { return words->first_epoch; }
  MEGAMOE_DEVICE RolesJoined* roles_joined() const { return &words->roles_joined; }
  MEGAMOE_DEVICE std::uint64_t* gate_seen() const { return &words->gate_seen; }
  MEGAMOE_DEVICE std::uint32_t* relay_has_left() const { return &words->relay_has_left; }
  MEGAMOE_DEVICE std::uint32_t* role_counts() const { return words->role_counts; }
  MEGAMOE_DEVICE bool relays_gate() const { return team() == 0; }
};

using Team = gpu::WarpTeam<SomePlace, NoPulls>;
static_assert(Machine<Team>);

__global__ void whole_protocol(const __grid_constant__ Call call,
                               const __grid_constant__ gpu::RunOptions options,
                               const Bfloat16* values) {
  extern __shared__ CtaWords words[];
  Team m(call, options, SomePlace{words}, NoPulls{});
  if (threadIdx.x < 64) {
    (void)dispatch(m, call);
    return;
  }
  (void)compute(m, call, [&] {
    return run_blocks(m, call, [&](const Block& block) {
      push_row(m, call, call.ring.row(block.pool, 0), 0, values, 8);
    });
  });
}

}  // namespace megamoe::test
