#pragma once

#include <cstdint>

#include "protocol/call.hpp"
#include "protocol/fault.hpp"
#include "protocol/machine.hpp"

// A call has three rank barriers, numbered from 1. Each is the same walk: all workers of a rank
// arrive; the rank's leader (worker 0) tells every peer, waits for every peer, and opens the gate
// that all roles of all workers wait at.

namespace megamoe {

/// This worker is at `barrier`: what its teams did before, they did before whoever passes. By one
/// team, after the worker's other teams have joined it.
template <Machine M>
MEGAMOE_PROTOCOL void arrive(M& m, const Call& call) {
  m.sync_team();
  if (m.lane() != 0) return;
  m.publish(call.local(call.workspace.workers_arrived), 1U);
  m.bump_progress();
}

/// Leader only: all workers of the rank have arrived at `barrier`.
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool wait_for_workers(M& m, const Call& call, int barrier) {
  const auto all =
      static_cast<std::uint64_t>(m.num_workers()) * static_cast<std::uint64_t>(barrier);
  const WorkersArrived* arrived = call.local(call.workspace.workers_arrived);
  return m.all(wait_until(m, {WaitFor::kWorkers, barrier, m.rank()}, [&] {
    return Observation{m.observe(arrived), all};
  }));
}

/// Leader only: tells every rank (its own included) that this one is at `barrier`, and waits until
/// all are.
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool meet_ranks(M& m, const Call& call, int barrier) {
  const Sym<RankArrival> arrival = call.workspace.arrival;
  const std::uint64_t epoch = m.first_epoch() + static_cast<std::uint64_t>(barrier);
  const int ranks = call.problem.ranks;
  m.sync_team();
  for (int peer = m.lane(); peer < ranks; peer += M::kLanes)
    m.announce(call.peers.on(peer, arrival.at(static_cast<std::uint64_t>(m.rank()))), epoch);
  bool all_here = true;
  for (int peer = m.lane(); all_here && peer < ranks; peer += M::kLanes) {
    const RankArrival* word = call.local(arrival) + peer;
    all_here = wait_until(m, {WaitFor::kRank, barrier, peer}, [&] {
      return Observation{m.observe(word), epoch};
    });
  }
  return m.all(all_here);
}

/// Leader only: lets every role of every worker of the rank go on.
template <Machine M>
MEGAMOE_PROTOCOL void open_gate(M& m, const Call& call) {
  m.sync_team();
  if (m.lane() == 0) m.publish(call.local(call.workspace.gate), std::uint64_t{1});
}

/// The leader may be waiting for any rank, so that any rank's progress keeps this wait alive.
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool wait_at_gate(M& m, const Call& call, int barrier) {
  const std::uint64_t open = m.first_epoch() + static_cast<std::uint64_t>(barrier);
  const Gate* gate = call.local(call.workspace.gate);
  const Wait wait{WaitFor::kGate, barrier, m.rank(), call.problem.ranks};
  return m.all(wait_until(m, wait, [&] { return Observation{m.observe(gate), open}; }));
}

/// This team is done with a part of the call (1: pulls and blocks, 2: cleanup and combine).
template <Machine M>
MEGAMOE_PROTOCOL void join_roles(M& m) {
  m.sync_team();
  if (m.lane() == 0) m.publish(m.roles_joined(), 1U);
}

/// All teams of the worker are done with `part`.
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool wait_for_roles(M& m, int part) {
  const auto all =
      static_cast<std::uint64_t>(m.teams_of_worker()) * static_cast<std::uint64_t>(part);
  return m.all(wait_until(m, {WaitFor::kRoles, part, m.rank()}, [&] {
    return Observation{m.observe(m.roles_joined()), all};
  }));
}

}  // namespace megamoe
