#include <cstring>

#include "sim/oracle.hpp"

namespace megamoe::sim {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

void Oracle::written(const void* place, std::size_t bytes) const {
  expect(memory_.rank_of(place, bytes) >= 0, "a write of ", bytes, " bytes outside all memory");
}

Oracle::Journey Oracle::journey_of(const RankState& s, const RowPull& pull) const {
  const Problem& p = s.call.problem;
  const Workspace& w = s.call.workspace;
  const std::int64_t row =
      (pull.pool_row - s.call.local(w.linear1_rows)) / static_cast<int>(w.format.linear1_row_bytes);
  expect(pull.pool_row >= s.call.local(w.linear1_rows) &&
             row < std::int64_t{s.call.ring.blocks} * s.call.ring.block_m &&
             pull.pool_row == s.call.local(w.linear1_rows.at(static_cast<std::uint64_t>(row) *
                                                             w.format.linear1_row_bytes)) &&
             pull.pool_scales == s.call.local(w.linear1_scales.at(static_cast<std::uint64_t>(row) *
                                                                  w.format.linear1_scale_bytes)) &&
             pull.pool_weight == s.call.local(w.row_weight.at(static_cast<std::uint64_t>(row))),
         "rank ",
         s.call.peers.rank,
         " pulls to no row of its pool");
  const int source = memory_.rank_of(pull.weight.raw(), sizeof(float));
  expect(source >= 0, "rank ", s.call.peers.rank, " pulls a weight from outside all memory");
  const Call& from = state(source).call;
  const auto pair = static_cast<int>(pull.weight.raw() - from.local(w.topk_weights));
  expect(pair >= 0 && pair < static_cast<int>(state(source).call.problem.pairs()),
         "rank ",
         s.call.peers.rank,
         " pulls pair ",
         pair,
         " of rank ",
         source);
  const auto token = static_cast<std::uint64_t>(pair / p.topk);
  const auto hidden = static_cast<std::uint64_t>(p.hidden);
  expect(pull.codes.raw() == from.local(w.tokens.at(token * hidden)) &&
             pull.scales.raw() == from.local(w.token_scales.at(token * hidden / kScaleGroup)),
         "rank ",
         s.call.peers.rank,
         " pulls bytes that are not those of pair ",
         pair,
         " of rank ",
         source);
  const int place = static_cast<int>(row) / s.call.ring.block_m;
  return {source, pair, static_cast<int>(row) % s.call.ring.block_m, owner(s, place)};
}

void Oracle::pull_begun(int rank, const RowPull& pull) {
  RankState& s = state(rank);
  const Journey j = journey_of(s, pull);
  const PoolState& pool = pool_block(s, j.block);
  const int expert = rank * s.call.problem.experts_per_rank() + pool.expert;
  expect(j.row_in_block < pool.rows && !pool.begun[at(j.row_in_block)],
         "rank ",
         rank,
         ": row ",
         j.row_in_block,
         " of pool block ",
         j.block.index,
         " (",
         pool.rows,
         " rows) is pulled again, or is none");
  const int row = pool.m * s.call.ring.block_m + j.row_in_block;
  expect(s.expectation->order(expert)[at(row)] == j.source_rank,
         "rank ",
         rank,
         ": row ",
         row,
         " of expert ",
         expert,
         " comes from rank ",
         j.source_rank,
         "; its turn is rank ",
         s.expectation->order(expert)[at(row)]);
  const RankInput& input = scenario_.calls[at(s.number)][at(j.source_rank)];
  expect(state(j.source_rank).number == s.number && j.pair < static_cast<int>(input.ids.size()) &&
             input.ids[at(j.pair)] == expert,
         "rank ",
         rank,
         ": pair ",
         j.pair,
         " of rank ",
         j.source_rank,
         " is not one of expert ",
         expert);
  expect(!s.pulled[at(j.source_rank)][at(j.pair)],
         "rank ",
         rank,
         ": pair ",
         j.pair,
         " of rank ",
         j.source_rank,
         " is pulled twice");
  s.pulled[at(j.source_rank)][at(j.pair)] = true;
  s.blocks[at(j.block.index)].begun[at(j.row_in_block)] = true;
}

void Oracle::pull_landed(int rank, const RowPull& pull) {
  RankState& s = state(rank);
  const Journey j = journey_of(s, pull);
  pool_block(s, j.block);
  ++s.blocks[at(j.block.index)].landed;
}

void Oracle::settle_begun(int rank, std::int64_t pool_row) {
  RankState& s = state(rank);
  const Ring& ring = s.call.ring;
  expect(pool_row >= 0 && pool_row < std::int64_t{ring.blocks} * ring.block_m,
         "rank ",
         rank,
         " settles row ",
         pool_row,
         " of its pool, which has ",
         std::int64_t{ring.blocks} * ring.block_m);
  const int place = static_cast<int>(pool_row) / ring.block_m;
  const int row = static_cast<int>(pool_row) % ring.block_m;
  const PoolBlock block = owner(s, place);
  const PoolState& pool = pool_block(s, block);
  expect(row < pool.rows && !pool.settling[at(row)],
         "rank ",
         rank,
         ": row ",
         row,
         " of pool block ",
         block.index,
         " (",
         pool.rows,
         " rows) is settled again, or is none");
  const std::uint32_t ready = s.call.local(s.call.workspace.ready)[place].value;
  expect(ready >= ring.ready_to_settle(block),
         "rank ",
         rank,
         ": row ",
         row,
         " of pool block ",
         block.index,
         " is settled at ready[",
         place,
         "] = ",
         ready,
         "; linear 1 is done at ",
         ring.ready_to_settle(block));
  s.blocks[at(block.index)].settling[at(row)] = true;
}

void Oracle::settle_landed(int rank, std::int64_t pool_row) {
  RankState& s = state(rank);
  const int block_m = s.call.ring.block_m;
  const PoolBlock block = owner(s, static_cast<int>(pool_row) / block_m);
  pool_block(s, block);
  PoolState& pool = s.blocks[at(block.index)];
  pool.settled[static_cast<std::size_t>(pool_row % block_m)] = true;
  ++pool.rows_settled;
}

void Oracle::check_input(int rank, const Block& block) const {
  const RankState& s = state(rank);
  const PoolState& model = pool_block(s, block.pool);
  const int index = block.pool.index;
  expect(block.expert == model.expert && block.m == model.m && block.rows == model.rows,
         "rank ",
         rank,
         ": pool block ",
         index,
         " is taken for block ",
         block.m,
         " of local expert ",
         block.expert,
         " with ",
         block.rows,
         " rows");
  expect(owner(s, s.call.ring.place(block.pool)).index == index,
         "rank ",
         rank,
         ": pool block ",
         index,
         " is computed while its place is another's");
  expect(model.landed == model.rows,
         "rank ",
         rank,
         ": pool block ",
         index,
         " is computed with ",
         model.landed,
         " of ",
         model.rows,
         " rows");
  if (block.phase == Phase::kLinear1) return;
  expect(model.linear1_computed == s.call.ring.linear1_blocks,
         "rank ",
         rank,
         ": linear 2 of pool block ",
         index,
         " after ",
         model.linear1_computed,
         " blocks of linear 1");
  expect(s.call.ring.settled_rows == 0 || model.rows_settled == model.rows,
         "rank ",
         rank,
         ": linear 2 of pool block ",
         index,
         " with ",
         model.rows_settled,
         " of ",
         model.rows,
         " rows settled");
}

void Oracle::lane_computed(int rank, const Block& block, int lanes) {
  check_input(rank, block);
  RankState& s = state(rank);
  const int index = block.pool.index;
  PoolState& pool = s.blocks[at(index)];
  const bool is_first = block.phase == Phase::kLinear1;
  int& done = (is_first ? pool.linear1 : pool.linear2)[at(block.n)];
  expect(done < lanes,
         "rank ",
         rank,
         ": block ",
         block.n,
         " of pool block ",
         index,
         " is computed twice");
  if (++done < lanes) return;
  ++(is_first ? pool.linear1_computed : pool.linear2_computed);
  if (pool.linear2_computed == s.call.ring.linear2_blocks) poison(s, block.pool);
}

// Nobody may need the rows of a pool block once its linear 2 is done.
void Oracle::poison(const RankState& s, PoolBlock block) const {
  const Workspace& w = s.call.workspace;
  const auto first = static_cast<std::uint64_t>(s.call.ring.row(block, 0));
  const auto rows = static_cast<std::size_t>(s.call.ring.block_m);
  const PoolFormat& f = w.format;
  std::memset(s.call.local(w.linear1_rows.at(first * f.linear1_row_bytes)),
              RankMemory::kPoison,
              rows * f.linear1_row_bytes);
  std::memset(s.call.local(w.linear1_scales.at(first * f.linear1_scale_bytes)),
              RankMemory::kPoison,
              rows * f.linear1_scale_bytes);
  std::memset(s.call.local(w.linear2_rows.at(first * f.linear2_row_bytes)),
              RankMemory::kPoison,
              rows * f.linear2_row_bytes);
  std::memset(s.call.local(w.row_weight.at(first)), RankMemory::kPoison, rows * sizeof(float));
  std::memset(static_cast<void*>(s.call.local(w.row_source.at(first))),
              RankMemory::kPoison,
              rows * sizeof(SourceSlot));
}

}  // namespace megamoe::sim
