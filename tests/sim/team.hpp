#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"
#include "sim/oracle.hpp"
#include "sim/rendezvous.hpp"
#include "sim/scheduler.hpp"
#include "sim/write_buffer.hpp"

namespace megamoe::sim {

enum class Role : int { kDispatch, kCompute };

/// One lane that left a call early, and where it stood.
struct Departure {
  int rank = 0;
  int worker = 0;
  Role role = Role::kDispatch;
  Abort abort;
  Wait wait;
  Observation observation;
  std::uint64_t when_ms = 0;
};

/// What all fibers of a run share.
struct World {
  Scheduler& scheduler;
  Oracle* oracle = nullptr;  ///< none: nothing is checked
  std::uint64_t timeout_ms = 1000;
  bool delays_writes = true;  ///< plain writes land as late as their release allows
  std::vector<Departure> departures;
};

/// Where a team stands, for one call.
struct Post {
  Role role = Role::kDispatch;
  int worker = 0;
  int num_workers = 1;
  int team = 0;
  int num_teams = 1;
  int teams_of_worker = 2;
  std::uint64_t first_epoch = 0;
};

using PipelineSteps = Counter<Scope::kWorker, struct PipelineStepsTag>;

/// What the teams of one worker share.
struct WorkerState {
  WorkerState(Scheduler& scheduler, int experts, int dispatch_lanes)
      : role_counts(static_cast<std::size_t>(experts)), dispatch(scheduler, dispatch_lanes) {}

  std::vector<std::uint32_t> role_counts;
  RolesJoined roles_joined{};
  PipelineSteps pipeline_steps{};
  Rendezvous dispatch;  ///< of all lanes of its dispatch teams
  std::vector<WriteBuffer*> dispatch_writes;
};

/// What the lanes of one team share.
struct TeamState {
  TeamState(Scheduler& scheduler, int width) : lanes(scheduler, width) {}

  Rendezvous lanes;
  std::vector<WriteBuffer*> writes;
  struct Flight {
    RowPull pull;
    bool is_read = false;  ///< the source's bytes are on their way
    std::vector<std::byte> codes, scales;
    float weight = 0;
  };
  std::deque<Flight> flights;
  /// A row of linear 2's input, of a team that settles rows.
  struct Settling {
    std::int64_t pool_row = 0;
    bool is_read = false;
    std::vector<std::uint64_t> cells;
  };
  std::deque<Settling> settling;
};

/// The simulated machine: every lane is a fiber, so that lanes may do everything that a warp's may;
/// what a team does together, its lanes meet for. Each verb lets others run first, and shows what
/// it did to the oracle.
template <int kWidth, int kPulls>
class Team {
 public:
  static constexpr int kLanes = kWidth;
  static constexpr int kPullsInFlight = kPulls;

  Team(World& world,
       const Call& call,
       const Post& post,
       WorkerState& worker,
       TeamState& team,
       int lane)
      : world_(world), call_(call), post_(post), worker_(worker), team_(team), lane_(lane) {
    team_.writes.push_back(&writes_);
    if (post_.role == Role::kDispatch) worker_.dispatch_writes.push_back(&writes_);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int lane() const { return lane_; }
  int team() const { return post_.team; }
  int num_teams() const { return post_.num_teams; }
  int teams_of_worker() const { return post_.teams_of_worker; }
  int worker() const { return post_.worker; }
  int num_workers() const { return post_.num_workers; }
  int rank() const { return call_.peers.rank; }
  std::uint64_t first_epoch() const { return post_.first_epoch; }
  std::uint32_t* role_counts() { return worker_.role_counts.data(); }
  RolesJoined* roles_joined() { return &worker_.roles_joined; }

  void sync_team() {
    meet("sync_team", 0, [this](const Values&) {
      WriteBuffer::synchronise(team_.writes);
      return 0;
    });
  }
  void sync_role() {
    if (post_.role != Role::kDispatch) fail("sync_role is for the dispatch role");
    turn();
    worker_.dispatch.meet("sync_role", post_.team * kLanes + lane_, 0, [this](const Values&) {
      WriteBuffer::synchronise(worker_.dispatch_writes);
      return 0;
    });
  }
  int reduce_add(int value) {
    return static_cast<int>(meet("reduce_add", bits(value), [](const Values& values) {
      int sum = 0;
      for (const std::uint64_t v : values)
        sum += static_cast<int>(v);
      return bits(sum);
    }));
  }
  int reduce_min(int value) {
    return static_cast<int>(meet("reduce_min", bits(value), [](const Values& values) {
      int least = static_cast<int>(values[0]);
      for (const std::uint64_t v : values)
        least = std::min(least, static_cast<int>(v));
      return bits(least);
    }));
  }
  std::uint32_t ballot(bool claim) {
    return static_cast<std::uint32_t>(meet("ballot", claim ? 1 : 0, [](const Values& values) {
      std::uint64_t mask = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        mask |= values[i] << i;
      return mask;
    }));
  }
  bool all(bool claim) {
    const std::uint64_t is_so_everywhere =
        meet("all", claim ? 1 : 0, [](const Values& values) -> std::uint64_t {
          return std::find(values.begin(), values.end(), 0U) == values.end() ? 1 : 0;
        });
    return is_so_everywhere != 0;
  }

  template <class C>
  typename C::Value observe(const C* counter) {
    world_.scheduler.look(counter);
    turn();
    return counter->value;
  }
  template <class C>
  void publish(C* counter, typename C::Value n) {
    turn();
    writes_.release();
    counter->value += n;
    world_.scheduler.touched(counter);
    if (world_.oracle != nullptr) world_.oracle->published(rank(), counter, counter->value);
  }
  template <SystemCounter C>
  void announce(Remote<C> counter, typename C::Value value) {
    turn();
    writes_.release();
    if (world_.oracle != nullptr) world_.oracle->announced(rank(), counter.raw(), value);
    counter.raw()->value = value;
    world_.scheduler.touched(counter.raw());
  }
  template <class C>
  typename C::Value claim(C* counter, typename C::Value n) {
    turn();
    const typename C::Value old = counter->value;
    counter->value += n;
    if (world_.oracle != nullptr) world_.oracle->claimed(rank(), counter, counter->value);
    return old;
  }
  template <SystemCounter C>
  void add(Remote<C> counter, typename C::Value n) {
    turn();
    if (world_.oracle != nullptr) world_.oracle->added(counter.raw(), counter.raw()->value + n);
    static_assert(sizeof(C) == sizeof(std::uint64_t), "a pending add is one of 64 bits");
    write({reinterpret_cast<std::byte*>(counter.raw()), {}, n, false});
  }
  template <class C>
  void clear(C* counter) {
    turn();
    if (world_.oracle != nullptr) world_.oracle->cleared(rank(), counter);
    counter->value = 0;
  }
  std::uint32_t claim_slot(int expert, std::uint32_t n) {
    turn();
    if (expert < 0 || expert >= call_.problem.experts) fail(sentence("a slot of expert ", expert));
    return std::exchange(worker_.role_counts[static_cast<std::size_t>(expert)],
                         worker_.role_counts[static_cast<std::size_t>(expert)] + n);
  }
  template <class T>
  void store(Remote<T> place, const T& value) {
    turn();
    write_bytes(place.raw(), &value, sizeof value);
  }
  /// Each lane moves its share.
  void push(Remote<Bfloat16> place, const Bfloat16* values, int n) {
    turn();
    for (int i = lane_; i < n; i += kLanes)
      write_bytes(place.at(static_cast<std::uint64_t>(i)).raw(), &values[i], sizeof values[i]);
  }

  void begin_pull(const RowPull& pull) {
    meet("begin_pull", reinterpret_cast<std::uintptr_t>(pull.pool_row), [&](const Values& values) {
      for (const std::uint64_t row : values)
        if (row != values[0]) fail("lanes of a team pull to different rows");
      if (team_.flights.size() == kPulls)
        fail("more pulls in flight than the machine has places for");
      if (!team_.settling.empty()) fail("a row is pulled while others are being settled");
      if (world_.oracle != nullptr) world_.oracle->pull_begun(rank(), pull);
      team_.flights.push_back({pull, false, {}, {}, 0});
      if (world_.scheduler.random().one_in(2)) read(team_.flights.back());
      return 0;
    });
  }
  /// The last lane to come has the bytes; they land like any other write of its.
  void finish_pull() {
    meet("finish_pull", 0, [this](const Values&) {
      if (team_.flights.empty()) fail("no pull is in flight");
      typename TeamState::Flight& flight = team_.flights.front();
      read(flight);
      const RowPull& pull = flight.pull;
      if (world_.oracle != nullptr) world_.oracle->pull_landed(rank(), pull);
      write_bytes(pull.pool_row, flight.codes.data(), flight.codes.size());
      write_bytes(pull.pool_scales, flight.scales.data(), flight.scales.size());
      write_bytes(pull.pool_weight, &flight.weight, sizeof flight.weight);
      team_.flights.pop_front();
      return 0;
    });
  }

  void pause(int /*polls*/) { world_.scheduler.pause(); }
  std::uint64_t now_ms() const { return world_.scheduler.now_ms(); }
  std::uint64_t timeout_ms() const { return world_.timeout_ms; }
  std::uint64_t progress_of(int rank) {
    turn();
    return call_.peers.on(rank, call_.workspace.progress).raw()->value;
  }
  void bump_progress() {
    turn();
    ++call_.local(call_.workspace.progress)->value;
  }
  Abort abort() { return Abort::of(observe(call_.local(call_.workspace.abort))); }

  void leave(const Abort& abort, const Wait& wait, const Observation& seen) {
    world_.departures.push_back({rank(), worker(), post_.role, abort, wait, seen, now_ms()});
    if (claim(call_.local(call_.workspace.fault_claims), 1U) == 0)
      *call_.local(call_.workspace.fault) = {abort, rank(), worker(), wait, seen};
    if (abort.reason != AbortReason::kExpired || abort.rank != rank()) return;
    for (int peer = 0; peer < call_.problem.ranks; ++peer) {
      turn();
      AbortWord* word = call_.peers.on(peer, call_.workspace.abort).raw();
      if (word->value == 0) word->value = abort.word();
      world_.scheduler.touched(word);
    }
  }

  void trace(Milestone /*milestone*/) {}

  // Not verbs: the machine's own.

  Role role() const { return post_.role; }
  World& world() { return world_; }
  /// All compute teams of the worker have done `step` blocks of work: a named wait, as on a machine
  /// whose roles meet at a pipeline.
  [[nodiscard]] bool meet_compute_teams(int step) {
    sync_team();
    if (lane_ == 0) publish(&worker_.pipeline_steps, 1U);
    const auto all_teams =
        static_cast<std::uint64_t>(post_.num_teams) * static_cast<std::uint64_t>(step);
    return all(wait_until(*this, {WaitFor::kPipeline, step, rank()}, [&] {
      return Observation{observe(&worker_.pipeline_steps), all_teams};
    }));
  }
  void land_all_writes() { writes_.release(); }
  bool has_unreleased_writes() const { return !writes_.is_empty(); }

 protected:
  using Values = std::vector<std::uint64_t>;

  const Call& call() const { return call_; }
  TeamState& shared() { return team_; }
  [[noreturn]] void fail(const std::string& what) {
    world_.scheduler.fail(sentence("rank ", rank(), ", worker ", worker(), ": ", what));
  }
  /// All lanes are at `verb`; the last one to come concludes.
  template <class Conclude>
  std::uint64_t meet(std::string_view verb, std::uint64_t value, Conclude conclude) {
    if constexpr (kLanes > 1) turn();
    return team_.lanes.meet(verb, lane_, value, conclude);
  }
  /// A plain write, which lands late.
  void write_bytes(void* place, const void* bytes, std::size_t count) {
    if (count == 0) return;
    if (world_.oracle != nullptr) world_.oracle->written(place, count);
    const auto* first = static_cast<const std::byte*>(bytes);
    write({static_cast<std::byte*>(place), {first, first + count}, 0, false});
  }

 private:
  static std::uint64_t bits(int value) { return static_cast<std::uint64_t>(std::int64_t{value}); }
  void turn() {
    writes_.land_some(world_.scheduler.random());
    world_.scheduler.turn();
  }
  void write(PendingWrite pending) {
    if (world_.delays_writes)
      writes_.add(std::move(pending));
    else
      pending.land();
  }
  void read(typename TeamState::Flight& flight) const {
    if (std::exchange(flight.is_read, true)) return;
    const auto hidden = static_cast<std::size_t>(call_.problem.hidden);
    flight.codes.resize(hidden);
    flight.scales.resize(hidden / kScaleGroup);
    std::memcpy(flight.codes.data(), flight.pull.codes.raw(), flight.codes.size());
    std::memcpy(flight.scales.data(), flight.pull.scales.raw(), flight.scales.size());
    flight.weight = *flight.pull.weight.raw();
  }

  World& world_;
  const Call& call_;
  Post post_;
  WorkerState& worker_;
  TeamState& team_;
  int lane_;
  WriteBuffer writes_;
};

static_assert(Machine<Team<1, 1>>);
static_assert(Machine<Team<32, 4>>);

}  // namespace megamoe::sim
