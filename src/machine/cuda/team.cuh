#pragma once

#include <cstdint>
#include <cuda/atomic>

#include "machine/cuda/ptx.cuh"
#include "machine/cuda/run_options.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"

namespace megamoe::gpu {

inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFFU;

template <Scope kReach>
inline constexpr ::cuda::thread_scope kThreadScope =
    kReach == Scope::kWorker   ? ::cuda::thread_scope_block
    : kReach == Scope::kDevice ? ::cuda::thread_scope_device
                               : ::cuda::thread_scope_system;

// The CUDA machines' team: one warp. `Place` answers where it stands and what it shares with the
// other teams of its CTA, mostly by constants and special registers: a field would live in a
// register through the whole role. `Pulls` brings rows into the pool in the machine's own format.
template <class Place, class Pulls>
class WarpTeam {
 public:
  static constexpr int kLanes = 32;
  static constexpr int kPullsInFlight = Pulls::kInFlight;

  MEGAMOE_DEVICE WarpTeam(const Call& call, const RunOptions& options, Place place, Pulls pulls)
      : call_(call), options_(options), place_(place), pulls_(pulls) {}

  MEGAMOE_DEVICE int lane() const { return static_cast<int>(threadIdx.x) % kLanes; }
  MEGAMOE_DEVICE int team() const { return place_.team(); }
  MEGAMOE_DEVICE int num_teams() const { return Place::kTeams; }
  MEGAMOE_DEVICE int teams_of_worker() const { return Place::kTeamsOfWorker; }
  MEGAMOE_DEVICE int worker() const { return static_cast<int>(blockIdx.x); }
  MEGAMOE_DEVICE int num_workers() const { return static_cast<int>(gridDim.x); }
  MEGAMOE_DEVICE int rank() const { return call_.peers.rank; }
  MEGAMOE_DEVICE std::uint64_t first_epoch() const { return place_.first_epoch(); }
  MEGAMOE_DEVICE std::uint32_t* role_counts() { return place_.role_counts(); }
  MEGAMOE_DEVICE RolesJoined* roles_joined() { return place_.roles_joined(); }

  MEGAMOE_DEVICE void sync_team() { __syncwarp(); }
  MEGAMOE_DEVICE void sync_role() {
    ptx::barrier_sync(Place::kRoleBarrier, Place::kTeams * kLanes);
  }
  MEGAMOE_DEVICE int reduce_add(int value) { return __reduce_add_sync(kAllLanes, value); }
  MEGAMOE_DEVICE int reduce_min(int value) { return __reduce_min_sync(kAllLanes, value); }
  MEGAMOE_DEVICE std::uint32_t ballot(bool claim) { return __ballot_sync(kAllLanes, claim); }
  MEGAMOE_DEVICE bool all(bool claim) { return __all_sync(kAllLanes, claim) != 0; }

  template <class C>
  MEGAMOE_DEVICE typename C::Value observe(const C* counter) {
    return word(counter).load(::cuda::memory_order_acquire);
  }
  // A rank's gate is awaited by every warp of every CTA: one team polls it and passes on what it
  // sees, through the CTA's shared memory (and the other's, of a pair).
  MEGAMOE_DEVICE std::uint64_t observe(const Gate* gate) {
    if (!place_.relays_gate()) return passed_on(place_.gate_seen());
    const std::uint64_t value = word(gate).load(::cuda::memory_order_acquire);
    if (lane() == 0) pass_on(place_.gate_seen(), value);
    return value;
  }
  template <class C>
  MEGAMOE_DEVICE void publish(C* counter, typename C::Value n) {
    word(counter).fetch_add(n, ::cuda::memory_order_release);
  }
  template <class C>
  MEGAMOE_DEVICE void announce(Remote<C> counter, typename C::Value value) {
    word(counter.raw()).store(value, ::cuda::memory_order_release);
  }
  template <class C>
  MEGAMOE_DEVICE typename C::Value claim(C* counter, typename C::Value n) {
    return word(counter).fetch_add(n, ::cuda::memory_order_relaxed);
  }
  template <class C>
  MEGAMOE_DEVICE void add(Remote<C> counter, typename C::Value n) {
    word(counter.raw()).fetch_add(n, ::cuda::memory_order_relaxed);
  }
  template <class C>
  MEGAMOE_DEVICE void clear(C* counter) {
    word(counter).store(0, ::cuda::memory_order_relaxed);
  }
  MEGAMOE_DEVICE std::uint32_t claim_slot(int expert, std::uint32_t n) {
    return atomicAdd(&role_counts()[expert], n);
  }
  template <class T>
  MEGAMOE_DEVICE void store(Remote<T> place, const T& value) {
    *place.raw() = value;
  }
  // `count` a multiple of 8, both sides 16-byte aligned.
  MEGAMOE_DEVICE void push(Remote<Bfloat16> place, const Bfloat16* values, int count) {
    auto* to = reinterpret_cast<uint4*>(place.raw());
    const auto* from = reinterpret_cast<const uint4*>(values);
    for (int i = lane(); i < count / 8; i += kLanes)
      to[i] = from[i];
  }

  MEGAMOE_DEVICE void begin_pull(const RowPull& pull) { pulls_.begin(call_, pull, lane()); }
  MEGAMOE_DEVICE void finish_pull() { pulls_.finish(call_, lane()); }
  // Where the machine's format wants rows settled between the linears (settle.hpp).
  MEGAMOE_DEVICE void begin_settle(std::int64_t pool_row) requires
      requires(Pulls p, const Call& c) {
    p.begin_settle(c, pool_row, 0);
  }
  { pulls_.begin_settle(call_, pool_row, lane()); }
  MEGAMOE_DEVICE void finish_settle() requires requires(Pulls p, const Call& c) {
    p.finish_settle(c, 0);
  }
  { pulls_.finish_settle(call_, lane()); }

  MEGAMOE_DEVICE void pause(int polls) {
    polls_ = polls;
    if (polls == 0) saw_relay_leave_ = false;
    if (polls >= kHotPolls) ptx::sleep_nanoseconds(kPauseNanoseconds);
  }
  MEGAMOE_DEVICE std::uint64_t now_ms() const { return ptx::global_nanoseconds() / 1'000'000; }
  MEGAMOE_DEVICE std::uint64_t timeout_ms() const { return options_.timeout_ms; }
  MEGAMOE_DEVICE std::uint64_t progress_of(int rank) {
    return word(call_.peers.on(rank, call_.workspace.progress).raw())
        .load(::cuda::memory_order_relaxed);
  }
  MEGAMOE_DEVICE void bump_progress() {
    claim(call_.local(call_.workspace.progress), std::uint64_t{1});
  }
  // Roles that fill and drain each other's rings must start their blocks together or not at all.
  // Until they have passed gate 1 they leave only when the relaying team has left, which is the
  // CTA's one decision.
  MEGAMOE_DEVICE Abort abort() {
    if (follows_relay_) return abort_of_relay();
    // Every warp that waits asks, so not at every poll.
    if (polls_ % kPollsPerAbortCheck != kPollsPerAbortCheck - 1) return {};
    return Abort::of(observe(call_.local(call_.workspace.abort)));
  }
  // From here on nobody in the CTA waits for this team's blocks without bound.
  MEGAMOE_DEVICE void decide_alone() { follows_relay_ = false; }

  // Every lane that gives up comes here; one of them writes the record.
  MEGAMOE_DEVICE void leave(const Abort& abort, const Wait& wait, const Observation& seen) {
    if (place_.relays_gate()) pass_on(place_.relay_has_left(), 1U);
    if (claim(call_.local(call_.workspace.fault_claims), 1U) == 0)
      *call_.local(call_.workspace.fault) = {abort, rank(), worker(), wait, seen};
    if (abort.reason != AbortReason::kExpired || abort.rank != rank()) return;
    for (int peer = 0; peer < call_.problem.ranks; ++peer) {
      std::uint32_t none = 0;
      word(call_.peers.on(peer, call_.workspace.abort).raw())
          .compare_exchange_strong(
              none, abort.word(), ::cuda::memory_order_release, ::cuda::memory_order_relaxed);
    }
  }

  // The worker's first team of the compute role speaks for it.
  MEGAMOE_DEVICE void trace(Milestone milestone) {
    if (options_.times == nullptr || team() != 0 || lane() != 0) return;
    options_.times[worker()].milestones[static_cast<int>(milestone)] = ptx::global_nanoseconds();
  }

 private:
  static constexpr int kHotPolls = 64;
  static constexpr std::uint32_t kPauseNanoseconds = 40;
  static constexpr int kPollsPerAbortCheck = 64;

  template <class C>
  static MEGAMOE_DEVICE auto word(C* counter) {
    return ::cuda::atomic_ref<typename C::Value, kThreadScope<C::kScope>>(counter->value);
  }
  template <class C>
  static MEGAMOE_DEVICE auto word(const C* counter) {
    return word(const_cast<C*>(counter));  // a reference to const can't be loaded atomically
  }

  // What the relaying team tells the other teams of its CTA, and of the other CTA of a pair.
  static constexpr ::cuda::thread_scope kRelayScope =
      Place::kIsPaired ? ::cuda::thread_scope_device : ::cuda::thread_scope_block;
  template <class Word>
  static MEGAMOE_DEVICE void pass_on(Word* word, Word value) {
    ::cuda::atomic_ref<Word, kRelayScope>(*word).store(value, ::cuda::memory_order_release);
    if constexpr (Place::kIsPaired)
      ::cuda::atomic_ref<Word, kRelayScope>(*ptx::of_cluster_rank(word, 1))
          .store(value, ::cuda::memory_order_release);
  }
  template <class Word>
  static MEGAMOE_DEVICE Word passed_on(Word* word) {
    return ::cuda::atomic_ref<Word, kRelayScope>(*word).load(::cuda::memory_order_acquire);
  }
  // Once the relay has left, what it saw of the gate is final: the caller looks once more before it
  // is told.
  MEGAMOE_DEVICE Abort abort_of_relay() {
    if (passed_on(place_.relay_has_left()) == 0) return {};
    if (saw_relay_leave_) return {AbortReason::kStopped, rank()};
    saw_relay_leave_ = true;
    return {};
  }

  const Call& call_;
  const RunOptions& options_;
  Place place_;
  Pulls pulls_;
  int polls_ = 0;  // of the wait under way
  bool saw_relay_leave_ = false;
  bool follows_relay_ = Place::kFollowsRelay;
};

}  // namespace megamoe::gpu
