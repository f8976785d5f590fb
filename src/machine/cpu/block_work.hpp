#pragma once

#include <memory>
#include <vector>

#include "machine/cpu/rank_weights.hpp"
#include "machine/cpu/team.hpp"
#include "machine/cpu/tile/tile.hpp"
#include "protocol/blocks.hpp"

namespace megamoe::cpu {

/// Output channels of a block: the unit in which workers share an expert's weights.
struct BlockChannels {
  int linear1 = kLinear1Step;  ///< interleaved gate and up channels, a multiple of kLinear1Step
  int linear2 = kLinear2Step;  ///< a multiple of kLinear2Step
};

/// How this machine lays out pool rows.
PoolFormat pool_format(const Problem& problem);

/// What a worker keeps from block to block and from call to call; of no meaning between blocks.
struct BlockScratch {
  std::unique_ptr<TileScratch> tile = std::make_unique<TileScratch>();
  std::vector<Bfloat16> rows;  ///< linear 2's output on its way to the peers
};

/// The work of one block in one worker: multiply, and store to where the protocol says.
class BlockWork {
 public:
  BlockWork(const Call& call,
            const TileKernel& kernel,
            const RankWeights& weights,
            BlockChannels channels,
            BlockScratch& scratch);

  /// Linear 1 into the pool's second buffer, or linear 2 into the combine buffers of the rows'
  /// source ranks.
  void run(Team& team, const Block& block);

 private:
  void linear1(const Block& block);
  void linear2(Team& team, const Block& block);

  const Call& call_;
  const TileKernel& kernel_;
  const RankWeights& weights_;
  BlockChannels channels_;
  BlockScratch& scratch_;
};

}  // namespace megamoe::cpu
