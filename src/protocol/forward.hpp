#pragma once

#include "protocol/barriers.hpp"
#include "protocol/blocks.hpp"
#include "protocol/call.hpp"
#include "protocol/cleanup.hpp"
#include "protocol/combine.hpp"
#include "protocol/machine.hpp"
#include "protocol/pull.hpp"
#include "protocol/route.hpp"
#include "protocol/settle.hpp"

// One call of one rank, as its two protocol roles see it. Every worker runs both, side by side:
// with a small ring a pull may have to wait for a block that the worker's own compute role has yet
// to finish.
//
//   dispatch   route, barrier 1, (pull, settle) | join | gate 2, clean up | join
//   compute    gate 1, blocks | join, barrier 2 | combine | join, barrier 3
//
// Both return false when the call is being abandoned (fault.hpp). A refused call (some rank brought
// too many tokens, or an id past the last expert) keeps all three barriers and skips pulls, blocks
// and combine, so that nothing is written.

namespace megamoe {

/// The worker whose teams of either role lead its rank's barriers.
template <Machine M>
MEGAMOE_PROTOCOL bool leads(M& m) {
  return m.worker() == 0 && m.team() == 0;
}

/// Steps 5 and 6b of one team, wave after wave.
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool bring_rows(M& m, const Call& call) {
  Puller<M> puller(m, call);
  if constexpr (SettlingMachine<M>) {
    for (auto wave = waves_of(call); !wave.is_over(); wave.advance()) {
      const int first_row = puller.next_row();
      if (!puller.pull(wave)) return false;
      puller.finish();
      if (!Settler<M>(m, call, first_row).settle(wave)) return false;
    }
  } else {
    for (auto wave = waves_of(call); !wave.is_over(); wave.advance())
      if (!puller.pull(wave)) return false;
    puller.finish();
  }
  return true;
}

template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool dispatch(M& m, const Call& call) {
  route(m, call);
  if (m.team() == 0) arrive(m, call);
  if (leads(m)) {
    if (!wait_for_workers(m, call, 1)) return false;
    publish_counts(m, call);
    if (!meet_ranks(m, call, 1)) return false;
    conclude_routing(m, call);
    open_gate(m, call);
  }
  if (!wait_at_gate(m, call, 1)) return false;
  if (!call_is_refused(call) && !bring_rows(m, call)) return false;
  join_roles(m);

  if (!wait_at_gate(m, call, 2)) return false;
  clean_up(m, call);
  join_roles(m);
  return true;
}

/// The end of a part of the call in the compute role: the worker's roles join, its first compute
/// team arrives for it, and the leader takes the rank through the barrier.
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool finish_part(M& m, const Call& call, int part) {
  join_roles(m);
  if (m.team() != 0) return true;
  if (!wait_for_roles(m, part)) return false;
  arrive(m, call);
  if (!leads(m)) return true;
  const int barrier = part + 1;
  if (!wait_for_workers(m, call, barrier) || !meet_ranks(m, call, barrier)) return false;
  const bool ends_call = part == 2;
  if (ends_call && m.lane() == 0) m.clear(call.local(call.workspace.workers_arrived));
  open_gate(m, call);
  return true;
}

/// `run(block loop)` is the machine's: it returns false when a wait in it failed.
template <Machine M, class RunBlocks>
[[nodiscard]] MEGAMOE_PROTOCOL bool compute(M& m, const Call& call, RunBlocks run) {
  if (!wait_at_gate(m, call, 1)) return false;
  m.trace(Milestone::kRouted);
  const bool is_refused = call_is_refused(call);
  if (!is_refused && !run()) return false;
  m.trace(Milestone::kComputed);
  if (!finish_part(m, call, 1)) return false;

  if (!wait_at_gate(m, call, 2)) return false;
  m.trace(Milestone::kMet);
  if (!is_refused) combine(m, call);
  m.trace(Milestone::kCombined);
  return finish_part(m, call, 2);
}

}  // namespace megamoe
