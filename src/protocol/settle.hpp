#pragma once

#include <cstdint>

#include "protocol/call.hpp"
#include "protocol/flights.hpp"
#include "protocol/machine.hpp"

namespace megamoe {

/// A machine that brings rows of linear 2's input into another form once all of a row is there:
///
///   begin_settle(pool row)  starts one row, by the whole team
///   finish_settle()         the oldest one lies in the pool in the form that linear 2 reads,
///                           visible to observers of a later publish
///
/// At most kPullsInFlight are begun and not finished, and no pull is under way meanwhile.
/// Ring::settled_rows is the block's rows then.
template <class M>
concept SettlingMachine = Machine<M> && requires(M m, std::int64_t pool_row) {
  m.begin_settle(pool_row);
  m.finish_settle();
};

/// Step 6b for one team and one wave: settles the rows that it pulled.
/// All teams settle a wave before they pull the next one's rows, so these waits close no circle:
/// what a row here waits for needs pulls of this wave, all of them begun before.
template <SettlingMachine M>
class Settler {
 public:
  /// `first_row`: the team's first of the wave, as its Puller counts.
  MEGAMOE_PROTOCOL Settler(M& m, const Call& call, int first_row)
      : m_(m), call_(call), row_(first_row) {}

  [[nodiscard]] MEGAMOE_PROTOCOL bool settle(Waves<RowsOfExpert>& wave) {
    const int settlers = m_.num_workers() * m_.num_teams();
    const bool is_done = wave.for_each_expert([&](const WaveRows& rows) {
      for (; row_ < rows.count; row_ += settlers)
        if (!settle_row(rows)) return false;
      row_ -= rows.count;
      return true;
    });
    while (is_done && !flights_.is_empty())
      finish_oldest();
    return is_done;
  }

 private:
  [[nodiscard]] MEGAMOE_PROTOCOL bool settle_row(const WaveRows& rows) {
    const Ring& ring = call_.ring;
    const PoolBlock block = rows.block(row_, ring.block_m);
    const int row_in_block = row_ % ring.block_m;
    if (!wait_for_linear1(block)) return false;
    if (flights_.is_full()) finish_oldest();
    m_.begin_settle(ring.row(block, row_in_block));
    const int added = rows.is_last(row_) ? ring.block_m - row_in_block : 1;
    flights_.take_off({ring.place(block), static_cast<std::uint32_t>(added)});
    return true;
  }

  [[nodiscard]] MEGAMOE_PROTOCOL bool wait_for_linear1(PoolBlock block) {
    if (block.index == ready_block_) return true;
    const ReadyBlocks* ready = &call_.local(call_.workspace.ready)[call_.ring.place(block)];
    const std::uint64_t expected = call_.ring.ready_to_settle(block);
    if (!m_.all(m_.observe(ready) >= expected)) {
      while (!flights_.is_empty())
        finish_oldest();
      const bool is_ready = wait_until(m_, {WaitFor::kLinear1, block.index, m_.rank()}, [&] {
        return Observation{m_.observe(ready), expected};
      });
      if (!m_.all(is_ready)) return false;
    }
    ready_block_ = block.index;
    return true;
  }

  MEGAMOE_PROTOCOL void finish_oldest() {
    m_.finish_settle();
    const Flight flight = flights_.land();
    m_.sync_team();
    if (m_.lane() != 0) return;
    m_.publish(&call_.local(call_.workspace.ready)[flight.place], flight.rows);
    m_.bump_progress();
  }

  M& m_;
  const Call& call_;
  int row_;  // the team's next, counted from the first one of the expert in its wave
  Flights<M::kPullsInFlight> flights_;
  int ready_block_ = -1;  // the pool block that was last found ready
};

}  // namespace megamoe
