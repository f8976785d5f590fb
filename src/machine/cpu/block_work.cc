#include "machine/cpu/block_work.hpp"

#include <algorithm>

namespace megamoe::cpu {

PoolFormat pool_format(const Problem& problem) {
  return {.linear1_row_bytes = static_cast<std::uint32_t>(row_bytes(problem.hidden)),
          .linear1_scale_bytes = 0,
          .linear2_row_bytes = static_cast<std::uint32_t>(row_bytes(problem.intermediate)),
          .linear2_scale_bytes = 0};
}

BlockWork::BlockWork(const Call& call,
                     const TileKernel& kernel,
                     const RankWeights& weights,
                     BlockChannels channels,
                     BlockScratch& scratch)
    : call_(call), kernel_(kernel), weights_(weights), channels_(channels), scratch_(scratch) {
  scratch_.rows.resize(static_cast<std::size_t>(call.ring.block_m) *
                       static_cast<std::size_t>(channels.linear2));
}

void BlockWork::run(Team& team, const Block& block) {
  if (block.phase == Phase::kLinear1)
    linear1(block);
  else
    linear2(team, block);
}

void BlockWork::linear1(const Block& block) {
  const Workspace& w = call_.workspace;
  const auto first_row = static_cast<std::uint64_t>(call_.ring.row(block.pool, 0));
  const int first_channel = block.n * channels_.linear1;
  kernel_.linear1(
      {
          .weights = weights_.linear1(block.expert),
          .first_channel = first_channel,
          .num_channels =
              std::min(channels_.linear1, 2 * call_.problem.intermediate - first_channel),
          .input = {call_.local(w.linear1_rows.at(first_row * w.format.linear1_row_bytes)),
                    w.format.linear1_row_bytes},
          .num_rows = block.rows,
          .routing_weights = call_.local(w.row_weight.at(first_row)),
          .bias = weights_.linear1_bias(block.expert),
          .activation = call_.problem.activation,
          .output = {call_.local(w.linear2_rows.at(first_row * w.format.linear2_row_bytes)),
                     w.format.linear2_row_bytes},
      },
      *scratch_.tile);
}

void BlockWork::linear2(Team& team, const Block& block) {
  const Workspace& w = call_.workspace;
  const std::int64_t first_row = call_.ring.row(block.pool, 0);
  const auto row = static_cast<std::uint64_t>(first_row);
  const int first_channel = block.n * channels_.linear2;
  const int channels = std::min(channels_.linear2, call_.problem.hidden - first_channel);
  kernel_.linear2(
      {
          .weights = weights_.linear2(block.expert),
          .first_channel = first_channel,
          .num_channels = channels,
          .input = {call_.local(w.linear2_rows.at(row * w.format.linear2_row_bytes)),
                    w.format.linear2_row_bytes},
          .num_rows = block.rows,
          .routing_weights = call_.local(w.row_weight.at(row)),
          .bias = weights_.linear2_bias(block.expert),
          .output = scratch_.rows.data(),
          .output_stride = static_cast<std::size_t>(channels_.linear2),
      },
      *scratch_.tile);
  for (int i = 0; i < block.rows; ++i)
    push_row(team,
             call_,
             first_row + i,
             first_channel,
             scratch_.rows.data() + i * channels_.linear2,
             channels);
}

}  // namespace megamoe::cpu
