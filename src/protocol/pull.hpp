#pragma once

#include <cstdint>

#include "protocol/call.hpp"
#include "protocol/flights.hpp"
#include "protocol/machine.hpp"
#include "protocol/pull_order.hpp"
#include "protocol/route.hpp"

namespace megamoe {

/// Step 5 for one team: pulls every `pullers`-th row that this rank received, experts in order, and
/// announces each one to linear 1. Keeps up to kPullsInFlight rows under way, but none while it
/// waits for a ring place: the block that must finish first may need the very rows that this team
/// holds back.
template <Machine M>
class Puller {
 public:
  MEGAMOE_PROTOCOL Puller(M& m, const Call& call)
      : m_(m), call_(call), row_(m.team() * m.num_workers() + m.worker()) {}

  /// The team's rows of one wave; the last ones may still be under way.
  [[nodiscard]] MEGAMOE_PROTOCOL bool pull(Waves<RowsOfExpert>& wave) {
    const int pullers = m_.num_workers() * m_.num_teams();
    return wave.for_each_expert([&](const WaveRows& rows) {
      if (row_ < rows.count) {
        PullOrder<M> order(
            m_, call_.problem.ranks, [&](int rank) { return received(rows.expert, rank); });
        for (; row_ < rows.count; row_ += pullers)
          if (!pull_row(rows, order)) return false;
      }
      row_ -= rows.count;
      return true;
    });
  }

  /// The team's first row of the next wave, counted from the first one of the wave's first expert.
  MEGAMOE_PROTOCOL int next_row() const { return row_; }

  /// Every row that was begun lies in the pool and is announced.
  MEGAMOE_PROTOCOL void finish() {
    while (!flights_.is_empty())
      finish_oldest();
  }

 private:
  MEGAMOE_PROTOCOL std::uint32_t received(int expert, int rank) const {
    return call_.local(call_.workspace.received)[rank * call_.problem.experts_per_rank() + expert]
        .value;
  }

  [[nodiscard]] MEGAMOE_PROTOCOL bool pull_row(const WaveRows& rows, PullOrder<M>& order) {
    const Ring& ring = call_.ring;
    const PoolBlock block = rows.block(row_, ring.block_m);
    const int row_in_block = row_ % ring.block_m;
    if (!wait_for_place(block)) return false;
    if (flights_.is_full()) finish_oldest();
    begin(rows.expert, order.at(m_, rows.before + row_), ring.row(block, row_in_block));
    const int added = rows.is_last(row_) ? ring.block_m - row_in_block : 1;
    flights_.take_off({ring.place(block), static_cast<std::uint32_t>(added)});
    return true;
  }

  [[nodiscard]] MEGAMOE_PROTOCOL bool wait_for_place(PoolBlock block) {
    const std::uint64_t expected = call_.ring.finished_before(block);
    if (expected == 0 || block.index == free_block_) return true;
    const FinishedBlocks* finished =
        &call_.local(call_.workspace.finished)[call_.ring.place(block)];
    if (!m_.all(m_.observe(finished) >= expected)) {
      finish();
      const bool is_free = wait_until(m_, {WaitFor::kRingPlace, block.index, m_.rank()}, [&] {
        return Observation{m_.observe(finished), expected};
      });
      if (!m_.all(is_free)) return false;
    }
    free_block_ = block.index;
    return true;
  }

  MEGAMOE_PROTOCOL void begin(int expert, const SourceRow& from, std::int64_t pool_row) {
    const Problem& p = call_.problem;
    const Workspace& w = call_.workspace;
    const std::uint32_t pair = call_.local(w.source)[source_index(p, expert, from.rank, from.slot)];
    const std::uint64_t token = pair / static_cast<std::uint32_t>(p.topk);
    const auto hidden = static_cast<std::uint64_t>(p.hidden);
    const auto row = static_cast<std::uint64_t>(pool_row);
    if (m_.lane() == 0)
      call_.local(w.row_source)[row] = {static_cast<std::uint32_t>(from.rank), pair};
    m_.begin_pull({
        .codes = read_only(call_.peers.on(from.rank, w.tokens.at(token * hidden))),
        .scales =
            read_only(call_.peers.on(from.rank, w.token_scales.at(token * hidden / kScaleGroup))),
        .weight = read_only(call_.peers.on(from.rank, w.topk_weights.at(pair))),
        .pool_row = call_.local(w.linear1_rows.at(row * w.format.linear1_row_bytes)),
        .pool_scales = call_.local(w.linear1_scales.at(row * w.format.linear1_scale_bytes)),
        .pool_weight = call_.local(w.row_weight.at(row)),
    });
  }

  template <class T>
  static constexpr Remote<const T> read_only(Remote<T> place) {
    return Remote<const T>(place.raw());
  }

  MEGAMOE_PROTOCOL void finish_oldest() {
    m_.finish_pull();
    const Flight flight = flights_.land();
    m_.sync_team();
    if (m_.lane() == 0) {
      m_.publish(&call_.local(call_.workspace.arrived)[flight.place], flight.rows);
      m_.bump_progress();
    }
  }

  M& m_;
  const Call& call_;
  int row_;  // the team's next, counted from the first one of the expert in its wave
  Flights<M::kPullsInFlight> flights_;
  int free_block_ = -1;  // the pool block whose place was last found free
};

}  // namespace megamoe
