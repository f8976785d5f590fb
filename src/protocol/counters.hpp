#pragma once

#include <cstdint>

// Every counter of the protocol, the index of who waits for whom. docs/memory-model.md quotes this
// file.
//
//   adds      who changes it, and with which order
//   observes  who reads it; always an acquire unless it says otherwise
//   expects   the value that an observer waits for
//   resets    who brings it back to zero, and when

namespace megamoe {

/// How far an order reaches.
enum class Scope {
  kWorker,  ///< the roles of one worker (a CTA's shared memory)
  kDevice,  ///< all workers of a rank
  kSystem,  ///< all ranks
};

template <Scope kReach, class Tag, class Word = std::uint32_t>
struct Counter {
  using Value = Word;
  static constexpr Scope kScope = kReach;
  Word value;
};

/// A word that other ranks may change: the only kind that a verb takes as a Remote.
template <class C>
concept SystemCounter = C::kScope == Scope::kSystem;

// Rows that this rank's counting workers found for one expert (low half) and how many of those
// workers are done with it (high half). The value that a claim returns holds the worker's first
// source slot in its low half.
//   adds      every counting worker of this rank, once an expert: relaxed, as WorkersArrived
//             orders it
//   observes  the leader, after all workers arrived at barrier 1
//   expects   counting_workers() in the high half
//   resets    cleanup, between barriers 2 and 3
using Sent = Counter<Scope::kDevice, struct SentTag, std::uint64_t>;

// Rows that one source rank has for one of this rank's experts.
//   adds      the source rank's leader, a plain store before it enters barrier 1
//   observes  pullers, once gate 1 is open                                       plain load
//   resets    cleanup
using Received = Counter<Scope::kSystem, struct ReceivedTag>;

// Rows that all ranks have for one of this rank's experts (low half), and how many ranks said so
// (high half).
//   adds      each rank's leader, after all its workers wrote their source slots: relaxed, as
//             barrier 1 orders it
//   observes  pullers, and every role that walks the schedule, once gate 1 is open; plain load
//   expects   `ranks` in the high half, from gate 1 on
//   resets    cleanup
using ReceivedSum = Counter<Scope::kSystem, struct ReceivedSumTag, std::uint64_t>;

// Rows of one ring block that lie in the pool, ready to be read.
//   adds      pullers, after the row's bytes landed; the expert's last row adds the padding too:
//             release, device
//   observes  linear 1
//   expects   block_m * (lap + 1)
//   resets    cleanup
using ArrivedRows = Counter<Scope::kDevice, struct ArrivedRowsTag>;

// Linear 1 blocks of one ring block whose output lies in the pool's second buffer, and, on machines
// that settle rows between the linears, those rows (settle.hpp).
//   adds      linear 1's epilogue, one a block; then whoever settles a row, one a row, with the
//             expert's last row the padding too                                   release, device
//   observes  who settles rows; linear 2
//   expects   (linear1_blocks + settled_rows) * lap + linear1_blocks, to settle;
//             (linear1_blocks + settled_rows) * (lap + 1), for linear 2
//   resets    cleanup
using ReadyBlocks = Counter<Scope::kDevice, struct ReadyBlocksTag>;

// Linear 2 blocks of one ring block that are pushed: its rows, weights and metadata are not read
// any more.
//   adds      linear 2's epilogue, one a block                                    release, device
//   observes  pullers, before they overwrite the ring block in its next lap
//   expects   linear2_blocks * lap
//   resets    cleanup
using FinishedBlocks = Counter<Scope::kDevice, struct FinishedBlocksTag>;

// Workers of this rank that reached a rank barrier of the current call.
//   adds      one lane of every worker, at each of the three barriers              release, device
//   observes  the leader
//   expects   num_workers * (number of the barrier in the call, from 1)
//   resets    the leader, before it opens the gate of barrier 3
using WorkersArrived = Counter<Scope::kDevice, struct WorkersArrivedTag>;

// How many rank barriers this rank has passed since it was made, or since reset(): three a call.
// Not reset between calls: a replayed graph goes on.
//   adds      the leader, one a barrier                                            release, device
//   observes  every role of every worker
//   expects   first_epoch + number of the barrier in the call
using Gate = Counter<Scope::kDevice, struct GateTag, std::uint64_t>;

// How many rank barriers the source rank has entered; one word for each source rank, so that a
// waiter can name the missing one. Reset like Gate.
//   adds      the source rank's leader: a store of its epoch                       release, system
//   observes  this rank's leader
//   expects   first_epoch + number of the barrier in the call
using RankArrival = Counter<Scope::kSystem, struct RankArrivalTag, std::uint64_t>;

// Goes up whenever a worker of this rank pulled or settled a row, finished a block, summed some
// tokens or arrived at a barrier; a waiter that sees it move starts its deadline anew, so that a
// slow rank is not taken for a dead one.
//   adds      every worker                                                         relaxed
//   observes  waiters of all ranks                                                relaxed
using Progress = Counter<Scope::kSystem, struct ProgressTag, std::uint64_t>;

// Not zero once any rank gave up: `Abort` packs who and why (fault.hpp). Everything that waits
// polls its own copy.
//   adds      the rank that gave up: a store at every peer                         release, system
//   observes  every wait of this rank
//   resets    reset(), while no call runs
using AbortWord = Counter<Scope::kSystem, struct AbortWordTag>;

// Roles of one worker that are done with a part of the call.
//   adds      one lane of every team of the worker, twice a call                   release, worker
//   observes  the worker's first compute team
//   expects   teams of the worker * (1: blocks and pulls done, 2: combine and cleanup done)
//   resets    the machine, before the call's roles start
using RolesJoined = Counter<Scope::kWorker, struct RolesJoinedTag>;

// Ids at or above the number of experts that were treated as masked; kept until the host asks.
//   adds      counting workers                                                     relaxed
//   observes  the host, between calls
//   resets    the host
using BadIds = Counter<Scope::kDevice, struct BadIdsTag>;

// Workers that wanted to write the fault record; the first one may.
//   adds      a worker that gives up                                               relaxed
//   resets    reset()
using FaultClaims = Counter<Scope::kDevice, struct FaultClaimsTag>;

/// The two halves of Sent and ReceivedSum.
struct CountAndMarks {
  std::uint32_t count;
  std::uint32_t marks;

  static constexpr CountAndMarks of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  constexpr std::uint64_t word() const { return (std::uint64_t{marks} << 32) | count; }
};
static_assert(CountAndMarks::of(CountAndMarks{7, 3}.word()).marks == 3);

}  // namespace megamoe
