#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "numerics/bfloat16.hpp"
#include "protocol/counters.hpp"
#include "protocol/fault.hpp"
#include "protocol/symmetric.hpp"
#include "protocol/trace.hpp"

namespace megamoe {

/// One row on its way from its source rank's input into the local pool.
struct RowPull {
  Remote<const std::uint8_t> codes;   ///< [hidden] E4M3
  Remote<const std::uint8_t> scales;  ///< [hidden / 32] UE8M0
  Remote<const float> weight;         ///< the k-slot's routing weight
  std::byte* pool_row;                ///< linear1_row_bytes of the machine's own format
  std::byte* pool_scales;             ///< linear1_scale_bytes of it
  float* pool_weight;
};

/// What the protocol asks of a machine. One value of a machine is one *team*: `kLanes` lanes that
/// run in lockstep (a warp, or one CPU thread) and play one role in one worker (a CTA, or a CPU
/// worker) of one rank. Protocol text runs on every lane; it never assumes how many there are, and
/// strides by kLanes. tests/conformance holds each machine to this.
///
/// Position, constant for a call:
///   kLanes, lane()                      the team's width; the lane's number in it
///   team(), num_teams()                 the team among those of its role in its worker
///   teams_of_worker()                   teams of all roles of the worker that run protocol text
///   worker(), num_workers()             the worker among those of its rank
///   rank()                              whose worker it is
///   first_epoch()                       the rank's Gate when the call began, before any role did
///   role_counts()                       [experts] words of the worker's own, zero at the start,
///                                       shared by its teams of the dispatch role
///   roles_joined()                      the worker's RolesJoined, zero at the start
///
/// The team:
///   sync_team()                         all lanes are here, and see each other's writes
///   sync_role()                         all teams of this role in this worker are here (dispatch
///                                       only, before any wait)
///   reduce_add, reduce_min              over the lanes, the result in each
///   ballot(bool)                        bit i: lane i's
///   all(bool)                           true in every lane when true in each
///
/// Memory:
///   observe(counter)                    acquire at the counter's scope
///   publish(counter, n)                 release add: this lane's earlier writes, and those it
///                                       synchronised with, are visible to whoever observes the sum
///   announce(remote counter, v)         release store to a word with a single writer, at the
///                                       counter's scope
///   claim(counter, n)                   relaxed fetch-add, returns the old value
///   add(remote counter, n)              relaxed add to any rank's copy, ordered by a later
///                                       announce
///   clear(counter)                      relaxed store of zero, while nobody else touches it
///   claim_slot(expert, n)               fetch-add on role_counts()[expert]
///   store(Remote<T>, v)                 plain write to any rank's copy, ordered by a later publish
///                                       or announce
///   push(Remote<Bfloat16>, src, n)      n consecutive values, in wide stores; by the whole team
///
/// Pulls, by the whole team, oldest first:
///   kPullsInFlight                      how many may be begun and not finished
///   begin_pull(RowPull)                 starts one
///   finish_pull()                       the oldest one's bytes are in the pool, visible to
///                                       observers of a later publish
///
/// Waiting:
///   pause(polls)                        between two polls, `polls` of them vain so far; gives the
///                                       core away in time
///   now_ms(), timeout_ms()              wall clock; the call's bound, 0 for none
///   progress_of(rank)                   relaxed read of the rank's Progress
///   bump_progress()                     relaxed add to this rank's
///   abort()                             this rank's abort word
///   leave(abort, wait, observation)     records where this worker stood (the first one's record
///                                       stays), sets the abort word of every rank when the abort
///                                       is this rank's own
///
/// Tracing, free when off:
///   trace(milestone)                    this team has reached a point of the call
template <class M>
concept Machine = requires(M m,
                           Gate* gate,
                           Sent* sent,
                           Remote<RankArrival> arrival,
                           Remote<ReceivedSum> sum,
                           Remote<std::uint32_t> word,
                           Remote<Bfloat16> row,
                           const Bfloat16* values,
                           const RowPull& pull,
                           const Abort& abort,
                           const Wait& wait,
                           const Observation& seen) {
  { M::kLanes } -> std::convertible_to<int>;
  { M::kPullsInFlight } -> std::convertible_to<int>;
  { m.lane() } -> std::same_as<int>;
  { m.team() } -> std::same_as<int>;
  { m.num_teams() } -> std::same_as<int>;
  { m.teams_of_worker() } -> std::same_as<int>;
  { m.worker() } -> std::same_as<int>;
  { m.num_workers() } -> std::same_as<int>;
  { m.rank() } -> std::same_as<int>;
  { m.first_epoch() } -> std::same_as<std::uint64_t>;
  { m.role_counts() } -> std::same_as<std::uint32_t*>;
  { m.roles_joined() } -> std::same_as<RolesJoined*>;
  m.sync_team();
  m.sync_role();
  { m.reduce_add(1) } -> std::same_as<int>;
  { m.reduce_min(1) } -> std::same_as<int>;
  { m.ballot(true) } -> std::same_as<std::uint32_t>;
  { m.all(true) } -> std::same_as<bool>;
  { m.observe(gate) } -> std::same_as<std::uint64_t>;
  m.publish(gate, std::uint64_t{1});
  m.add(sum, std::uint64_t{1});
  m.announce(arrival, std::uint64_t{1});
  { m.claim(sent, std::uint64_t{1}) } -> std::same_as<std::uint64_t>;
  m.clear(sent);
  { m.claim_slot(0, 1U) } -> std::same_as<std::uint32_t>;
  m.store(word, 1U);
  m.push(row, values, 8);
  m.begin_pull(pull);
  m.finish_pull();
  m.pause(0);
  { m.now_ms() } -> std::same_as<std::uint64_t>;
  { m.timeout_ms() } -> std::same_as<std::uint64_t>;
  { m.progress_of(0) } -> std::same_as<std::uint64_t>;
  m.bump_progress();
  { m.abort() } -> std::same_as<Abort>;
  m.leave(abort, wait, seen);
  m.trace(Milestone::kRouted);
};

}  // namespace megamoe
