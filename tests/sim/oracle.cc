#include "sim/oracle.hpp"

#include <algorithm>

namespace megamoe::sim {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

Oracle::Oracle(const Scenario& scenario, const RankMemory& memory, Scheduler& scheduler)
    : scenario_(scenario),
      memory_(memory),
      scheduler_(scheduler),
      ranks_(at(scenario.problem.ranks)) {
  for (int number = 0; number < static_cast<int>(scenario.calls.size()); ++number)
    expectations_.emplace_back(scenario, number);
}

void Oracle::begin_call(const Call& call, int number, std::uint64_t first_epoch) {
  RankState& s = state(call.peers.rank);
  s.call = call;
  s.number = number;
  s.first_epoch = first_epoch;
  s.expectation = &expectation(number);
  s.blocks.clear();
  const Problem& p = call.problem;
  s.pulled.assign(at(p.ranks), std::vector<bool>(static_cast<std::size_t>(p.pairs())));
  for (int expert = 0; expert < p.experts_per_rank() && !s.expectation->is_refused(); ++expert) {
    const int rows = s.expectation->rows(call.peers.rank * p.experts_per_rank() + expert);
    for (int m = 0; m * call.ring.block_m < rows; ++m) {
      PoolState block;
      block.expert = expert;
      block.m = m;
      block.rows = std::min(call.ring.block_m, rows - m * call.ring.block_m);
      block.is_last = (m + 1) * call.ring.block_m >= rows;
      block.begun.resize(at(block.rows));
      block.settling.resize(at(block.rows));
      block.settled.resize(at(block.rows));
      block.linear1.resize(at(call.ring.linear1_blocks));
      block.linear2.resize(at(call.ring.linear2_blocks));
      s.blocks.push_back(std::move(block));
    }
  }
}

std::uint64_t Oracle::gate(int rank) const {
  const Call& call = state(rank).call;
  return call.local(call.workspace.gate)->value;
}

std::uint32_t Oracle::finished(const RankState& s, int place) const {
  return s.call.local(s.call.workspace.finished)[place].value;
}

PoolBlock Oracle::owner(const RankState& s, int place) const {
  const int laps = static_cast<int>(finished(s, place)) / s.call.ring.linear2_blocks;
  return {laps * s.call.ring.blocks + place};
}

const Oracle::PoolState& Oracle::pool_block(const RankState& s, PoolBlock block) const {
  expect(block.index < static_cast<int>(s.blocks.size()),
         "rank ",
         s.call.peers.rank,
         " uses pool block ",
         block.index,
         ", and its rows fill only ",
         s.blocks.size());
  return s.blocks[at(block.index)];
}

void Oracle::published(int rank, const ArrivedRows* counter, std::uint32_t now) const {
  const RankState& s = state(rank);
  const auto place = static_cast<int>(counter - s.call.local(s.call.workspace.arrived));
  const PoolBlock block = owner(s, place);
  const PoolState& pool = pool_block(s, block);
  const bool has_padding = pool.is_last && pool.landed == pool.rows;
  const bool may_have_padding = pool.is_last && pool.landed > 0;
  const int rows = pool.landed + (may_have_padding ? s.call.ring.block_m - pool.rows : 0);
  const std::uint32_t earlier =
      s.call.ring.arrived_when_full(block) - static_cast<std::uint32_t>(s.call.ring.block_m);
  expect(now <= earlier + static_cast<std::uint32_t>(rows),
         "rank ",
         rank,
         ": ",
         now,
         " rows of pool block ",
         block.index,
         " are announced, and ",
         pool.landed,
         " of ",
         pool.rows,
         " landed after ",
         earlier,
         " of earlier laps");
  expect(now < s.call.ring.arrived_when_full(block) || has_padding ||
             pool.landed == s.call.ring.block_m,
         "rank ",
         rank,
         ": pool block ",
         block.index,
         " is announced full with ",
         pool.landed,
         " of ",
         pool.rows,
         " rows");
}

// Rows count once linear 1 is done with all of the block, and the padding with the expert's last
// one.
int Oracle::ready_now(const RankState& s, const PoolState& pool) {
  const Ring& ring = s.call.ring;
  if (pool.linear1_computed < ring.linear1_blocks) return pool.linear1_computed;
  const int padding = pool.is_last && pool.settled.back() ? ring.settled_rows - pool.rows : 0;
  return ring.linear1_blocks + pool.rows_settled + padding;
}

void Oracle::published(int rank, const ReadyBlocks* counter, std::uint32_t now) const {
  const RankState& s = state(rank);
  const Ring& ring = s.call.ring;
  const auto place = static_cast<int>(counter - s.call.local(s.call.workspace.ready));
  const PoolBlock block = owner(s, place);
  const PoolState& pool = pool_block(s, block);
  const auto most = static_cast<std::uint32_t>(
      ring.lap(block) * (ring.linear1_blocks + ring.settled_rows) + ready_now(s, pool));
  expect(now <= most || ring.settled_rows > 0,
         "rank ",
         rank,
         ": ready[",
         place,
         "] is ",
         now,
         ", and linear 1 has done ",
         most,
         " blocks there");
  expect(now <= most,
         "rank ",
         rank,
         ": ready[",
         place,
         "] is ",
         now,
         ", and may be ",
         most,
         " with ",
         pool.linear1_computed,
         " blocks of linear 1 done and ",
         pool.rows_settled,
         " of ",
         pool.rows,
         " rows settled");
}

void Oracle::published(int rank, const FinishedBlocks* counter, std::uint32_t now) const {
  const RankState& s = state(rank);
  const auto place = static_cast<int>(counter - s.call.local(s.call.workspace.finished));
  const int laps = static_cast<int>(now - 1) / s.call.ring.linear2_blocks;
  const PoolBlock block{laps * s.call.ring.blocks + place};
  const std::uint32_t most = s.call.ring.finished_before(block) +
                             static_cast<std::uint32_t>(pool_block(s, block).linear2_computed);
  expect(now <= most,
         "rank ",
         rank,
         ": finished[",
         place,
         "] is ",
         now,
         ", and linear 2 has done ",
         most,
         " blocks there");
}

}  // namespace megamoe::sim
