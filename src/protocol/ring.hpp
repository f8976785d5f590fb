#pragma once

#include <cstdint>

namespace megamoe {

/// A block of pool rows in the endless pool that the protocol thinks in: experts back to back, each
/// padded to block_m.
struct PoolBlock {
  int index = 0;
};

/// The ring that pool blocks really lie in: pool block b in ring block b mod n, lap b / n. Counters
/// of a ring block only grow during a call, so every expected value says its lap.
struct Ring {
  int blocks = 1;          ///< n
  int block_m = 16;        ///< rows of a block
  int linear1_blocks = 1;  ///< N-blocks of linear 1 (each one makes `ready` go up by one)
  int linear2_blocks = 1;  ///< N-blocks of linear 2 (each one makes `finished` go up by one)
  int linear2_lead = 0;  ///< linear 2 blocks that a worker does while another does a linear 1 block
  int settled_rows = 0;  ///< rows of a block that are settled between the linears (each one makes
                         ///< `ready` go up by one): block_m, or 0 for a machine that doesn't

  bool operator==(const Ring&) const = default;

  constexpr int place(PoolBlock block) const { return block.index % blocks; }
  constexpr int lap(PoolBlock block) const { return block.index / blocks; }
  /// The pool row of a block's row, as an index into the pool's arrays.
  constexpr std::int64_t row(PoolBlock block, int row_in_block) const {
    return std::int64_t{place(block)} * block_m + row_in_block;
  }

  constexpr std::uint32_t arrived_when_full(PoolBlock block) const {
    return count(block_m, lap(block) + 1);
  }
  constexpr std::uint32_t ready_when_done(PoolBlock block) const {
    return count(linear1_blocks + settled_rows, lap(block) + 1);
  }
  /// ReadyBlocks at which linear 1 is done with the block and its rows may be settled.
  constexpr std::uint32_t ready_to_settle(PoolBlock block) const {
    return count(linear1_blocks + settled_rows, lap(block)) +
           static_cast<std::uint32_t>(linear1_blocks);
  }
  /// FinishedBlocks at which the block that lay here a lap before may be overwritten.
  constexpr std::uint32_t finished_before(PoolBlock block) const {
    return count(linear2_blocks, lap(block));
  }

 private:
  static constexpr std::uint32_t count(int a_lap, int laps) {
    return static_cast<std::uint32_t>(a_lap) * static_cast<std::uint32_t>(laps);
  }
};
static_assert(Ring{.blocks = 4, .block_m = 16}.row({9}, 3) == 19);
static_assert(Ring{.blocks = 4, .block_m = 16}.arrived_when_full({9}) == 48);

}  // namespace megamoe
