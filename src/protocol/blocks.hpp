#pragma once

#include <cstdint>

#include "protocol/call.hpp"
#include "protocol/machine.hpp"

// What a block waits for and what it signals. A machine whose compute role is one team runs
// `run_blocks`; one that splits it (loaders, multiply, epilogue) walks the same schedule in each
// role and uses the pieces.

namespace megamoe {

/// The block's rows may be read: pulled (linear 1), or written by all linear 1 blocks of the pool
/// block (linear 2).
template <Machine M>
[[nodiscard]] MEGAMOE_PROTOCOL bool wait_for_input(M& m, const Call& call, const Block& block) {
  const Workspace& w = call.workspace;
  const int place = call.ring.place(block.pool);
  if (block.phase == Phase::kLinear1) {
    const ArrivedRows* arrived = &call.local(w.arrived)[place];
    const std::uint64_t expected = call.ring.arrived_when_full(block.pool);
    return m.all(wait_until(m, {WaitFor::kRows, block.pool.index, m.rank()}, [&] {
      return Observation{m.observe(arrived), expected};
    }));
  }
  const ReadyBlocks* ready = &call.local(w.ready)[place];
  const std::uint64_t expected = call.ring.ready_when_done(block.pool);
  return m.all(wait_until(m, {WaitFor::kLinear1, block.pool.index, m.rank()}, [&] {
    return Observation{m.observe(ready), expected};
  }));
}

/// The block's output lies in the pool (linear 1) or in its source ranks' combine buffers (linear
/// 2). By one team, after the others that worked on the block have joined it.
template <Machine M>
MEGAMOE_PROTOCOL void signal_output(M& m, const Call& call, const Block& block) {
  const Workspace& w = call.workspace;
  const int place = call.ring.place(block.pool);
  m.sync_team();
  if (m.lane() != 0) return;
  if (block.phase == Phase::kLinear1)
    m.publish(&call.local(w.ready)[place], 1U);
  else
    m.publish(&call.local(w.finished)[place], 1U);
  m.bump_progress();
}

/// Step 8 for one row: `values` go to the row's (token, k) on its source rank, from output channel
/// `channel` on.
template <Machine M>
MEGAMOE_PROTOCOL void push_row(
    M& m, const Call& call, std::int64_t pool_row, int channel, const Bfloat16* values, int n) {
  const SourceSlot slot = call.local(call.workspace.row_source)[pool_row];
  m.push(combine_row(call, slot).at(static_cast<std::uint64_t>(channel)), values, n);
}

/// Steps 6 to 8 for one team that does a block's whole work: `compute(block)` multiplies and
/// stores.
template <Machine M, class Compute>
[[nodiscard]] MEGAMOE_PROTOCOL bool run_blocks(M& m, const Call& call, Compute compute) {
  auto schedule = schedule_of(call, m.worker(), m.num_workers());
  for (Block block; schedule.next(block);) {
    if (!wait_for_input(m, call, block)) return false;
    compute(block);
    signal_output(m, call, block);
  }
  return true;
}

}  // namespace megamoe
