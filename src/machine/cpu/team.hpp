#pragma once

#include <atomic>
#include <cstring>
#include <vector>

#include "machine/cpu/backoff.hpp"
#include "machine/cpu/tile/tile.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"

namespace megamoe::cpu {

/// Where a thread stands in its rank.
struct Position {
  int worker = 0;
  int num_workers = 1;
};

/// What the two roles of a worker share.
struct WorkerState {
  std::vector<std::uint32_t> role_counts;  ///< [experts]
  RolesJoined roles_joined{};
};

/// When a rank's first worker reached each milestone of a call, and when the call began and ended;
/// nanoseconds on the monotonic clock.
struct CallTimes {
  std::int64_t start = 0;
  std::int64_t milestones[4] = {};  ///< by Milestone
  std::int64_t end = 0;

  std::int64_t at(Milestone milestone) const { return milestones[static_cast<int>(milestone)]; }
};

/// What the roles of a rank need besides the call.
struct CallEnvironment {
  std::uint64_t first_epoch = 0;
  std::uint64_t timeout_ms = 0;  ///< 0: waits are not bounded
  const TileKernel* kernel = nullptr;
  CallTimes* times = nullptr;  ///< the first worker's compute role writes it
};

/// The CPU machine: a team is one thread, a lane of its own. Orders are those of std::atomic_ref at
/// every scope; that they reach other processes is the mapping's doing.
class Team {
 public:
  static constexpr int kLanes = 1;
  static constexpr int kPullsInFlight = 1;

  Team(const Call& call, const CallEnvironment& environment, Position position, WorkerState& worker)
      : call_(call), environment_(environment), position_(position), worker_(worker) {}

  int lane() const { return 0; }
  int team() const { return 0; }
  int num_teams() const { return 1; }
  int teams_of_worker() const { return 2; }
  int worker() const { return position_.worker; }
  int num_workers() const { return position_.num_workers; }
  int rank() const { return call_.peers.rank; }
  std::uint64_t first_epoch() const { return environment_.first_epoch; }
  std::uint32_t* role_counts() { return worker_.role_counts.data(); }
  RolesJoined* roles_joined() { return &worker_.roles_joined; }

  void sync_team() {}
  void sync_role() {}
  int reduce_add(int value) { return value; }
  int reduce_min(int value) { return value; }
  std::uint32_t ballot(bool claim) { return claim ? 1U : 0U; }
  bool all(bool claim) { return claim; }

  template <class C>
  typename C::Value observe(const C* counter) {
    return word(counter).load(std::memory_order_acquire);
  }
  template <class C>
  void publish(C* counter, typename C::Value n) {
    word(counter).fetch_add(n, std::memory_order_release);
  }
  template <SystemCounter C>
  void announce(Remote<C> counter, typename C::Value value) {
    word(counter.raw()).store(value, std::memory_order_release);
  }
  template <class C>
  typename C::Value claim(C* counter, typename C::Value n) {
    return word(counter).fetch_add(n, std::memory_order_relaxed);
  }
  template <SystemCounter C>
  void add(Remote<C> counter, typename C::Value n) {
    word(counter.raw()).fetch_add(n, std::memory_order_relaxed);
  }
  template <class C>
  void clear(C* counter) {
    word(counter).store(0, std::memory_order_relaxed);
  }
  std::uint32_t claim_slot(int expert, std::uint32_t n) {
    std::uint32_t& slot = worker_.role_counts[static_cast<std::size_t>(expert)];
    const std::uint32_t old = slot;
    slot += n;
    return old;
  }
  template <class T>
  void store(Remote<T> place, const T& value) {
    *place.raw() = value;
  }
  void push(Remote<Bfloat16> place, const Bfloat16* values, int n) {
    std::memcpy(place.raw(), values, static_cast<std::size_t>(n) * sizeof(Bfloat16));
  }

  void begin_pull(const RowPull& pull) {
    environment_.kernel->store_row(
        pull.codes.raw(), pull.scales.raw(), call_.problem.hidden, pull.pool_row);
    *pull.pool_weight = *pull.weight.raw();
  }
  void finish_pull() {}

  void pause(int polls) { back_off(polls); }
  std::uint64_t now_ms() const { return static_cast<std::uint64_t>(monotonic_ns() / 1'000'000); }
  std::uint64_t timeout_ms() const { return environment_.timeout_ms; }
  std::uint64_t progress_of(int rank) {
    return word(call_.peers.on(rank, call_.workspace.progress).raw())
        .load(std::memory_order_relaxed);
  }
  void bump_progress() { claim(call_.local(call_.workspace.progress), std::uint64_t{1}); }
  Abort abort() { return Abort::of(observe(call_.local(call_.workspace.abort))); }

  void leave(const Abort& abort, const Wait& wait, const Observation& seen) {
    if (claim(call_.local(call_.workspace.fault_claims), 1U) == 0)
      *call_.local(call_.workspace.fault) = {abort, rank(), position_.worker, wait, seen};
    if (abort.reason == AbortReason::kExpired && abort.rank == rank()) tell_all(call_, abort);
  }

  void trace(Milestone milestone) {
    if (worker() == 0) environment_.times->milestones[static_cast<int>(milestone)] = monotonic_ns();
  }

  /// Sets every rank's abort word, unless it is set: the first cause stays.
  static void tell_all(const Call& call, const Abort& abort) {
    for (int peer = 0; peer < call.problem.ranks; ++peer) {
      std::uint32_t none = 0;
      word(call.peers.on(peer, call.workspace.abort).raw())
          .compare_exchange_strong(
              none, abort.word(), std::memory_order_release, std::memory_order_relaxed);
    }
  }

 private:
  template <class C>
  static std::atomic_ref<typename C::Value> word(C* counter) {
    return std::atomic_ref(counter->value);
  }
  template <class C>
  static std::atomic_ref<typename C::Value> word(const C* counter) {
    return std::atomic_ref(const_cast<C*>(counter)->value);  // atomic_ref<const T> is C++26
  }

  const Call& call_;
  const CallEnvironment& environment_;
  Position position_;
  WorkerState& worker_;
};

static_assert(Machine<Team>);

}  // namespace megamoe::cpu
