#pragma once

#include <array>
#include <cstddef>
#include <string_view>

// What is decided by measurement and by taste rather than by arithmetic. Each table is read from
// the top, the first row that fits counts, and its reason is printed with the plan.

namespace megamoe {

/// The height of a tile, by the rows that an expert is expected to have. Where it doesn't divide
/// the pool's granule of 384, the rest of the pool lies idle.
struct TileRule {
  double up_to_rows_per_expert;
  int block_m;
  std::string_view why;
};
inline constexpr double kAnyRows = 1e30;

/// The width of a block, by the linear 1 blocks that every worker would still have of it.
struct ChannelRule {
  int linear1_block_n;  ///< interleaved gate and up rows
  int linear2_block_n;
  int least_blocks_per_worker;
  std::string_view why;
};

// CPU. The FP4 weights of a block are read and decoded once for all of its rows, so an expert's
// rows should fit one block. Twice the expected rows do: a higher tile costs nothing in time but
// takes more of a small pool.
inline constexpr std::array kCpuTiles = {
    TileRule{8.0, 16, "decode of a few tokens: one block an expert, and most of a small pool left"},
    TileRule{16.0, 32, "twice the expected rows fit one block: weights are decoded once"},
    TileRule{32.0, 64, "twice the expected rows fit one block: weights are decoded once"},
    TileRule{48.0, 96, "twice the expected rows fit one block: weights are decoded once"},
    TileRule{64.0, 128, "twice the expected rows fit one block: weights are decoded once"},
    TileRule{kAnyRows, 192, "the highest tile: weights are decoded once for most rows"},
};

// The CPU's unit of linear 1 is two panels of 32 rows, which become one group of linear 2's input.
inline constexpr std::array kCpuChannels = {
    ChannelRule{256, 256, 64, "plenty of blocks: wide ones have fewer counters to bump"},
    ChannelRule{128, 128, 32, "enough blocks for an even split, with half the counters to bump"},
    ChannelRule{64, 64, 0, "few blocks: the narrowest, so that workers end together"},
};

// On both GPUs tokens are the N of the MMA: its time grows with the tile's height, weights are read
// through the cache, and so a block should be no higher than its rows.

// Hopper, as measured: routing is never balanced, and a second block of a few rows costs as much as
// the first, but up to 32 tokens four warpgroups decode ahead.
inline constexpr std::array kSm90Tiles = {
    TileRule{5.0, 8, "the memory limit: weights are read for a handful of rows"},
    TileRule{12.0, 16, "the memory limit: a tile of twice the height is nearly free"},
    TileRule{34.0, 32, "the memory limit still: a second block costs less than a higher one"},
    TileRule{48.0, 64, "between the limits of memory and of arithmetic"},
    TileRule{72.0, 96, "between the limits: one block an expert, with room for imbalance"},
    TileRule{96.0, 128, "arithmetic begins to decide: one block an expert"},
    TileRule{kAnyRows,
             160,
             "the limit of arithmetic: the highest tile, of whose blocks the last is narrow"},
};

inline constexpr std::array kSm100Tiles = {
    TileRule{8.5, 16, "the memory limit: weights are read for a handful of rows"},
    TileRule{16.5, 32, "the memory limit still: the tile is nearly free"},
    TileRule{32.5, 64, "between the limits of memory and of arithmetic"},
    TileRule{64.5, 96, "between the limits: one block an expert, with room for imbalance"},
    TileRule{96.5, 128, "arithmetic begins to decide: one block an expert"},
    TileRule{kAnyRows, 192, "the limit of arithmetic: the highest tile, scales amortised best"},
};

inline constexpr std::array kSm90Channels = {
    ChannelRule{256, 256, 0, "four slabs of 64 weight rows, one run of packed memory a stage"},
};

inline constexpr std::array kSm100Channels = {
    ChannelRule{128, 128, 0, "a CTA's half of the 256 weight rows of a paired MMA"},
};

/// Work is estimated from a balanced routing; real ones are not, by about so much.
inline constexpr int kImbalance = 2;

/// The row of `rules` that holds for so many expected rows.
template <class Tiles>
constexpr const TileRule& tile_rule_of(const Tiles& rules, double rows_per_expert) {
  for (const TileRule& rule : rules)
    if (rows_per_expert <= rule.up_to_rows_per_expert) return rule;
  return *(rules.end() - 1);
}

/// True when thresholds and heights go up and no load is left over.
template <class Tiles>
constexpr bool is_ladder(const Tiles& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].block_m % 8 != 0 || rules[i].why.empty()) return false;
    if (i > 0 && (rules[i - 1].block_m >= rules[i].block_m ||
                  rules[i - 1].up_to_rows_per_expert >= rules[i].up_to_rows_per_expert))
      return false;
  }
  return rules[rules.size() - 1].up_to_rows_per_expert == kAnyRows;
}

/// True when widths go down and the last row takes every load.
template <class Channels>
constexpr bool ends_in_any(const Channels& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].linear1_block_n % 64 != 0 || rules[i].linear2_block_n % 32 != 0) return false;
    if (rules[i].why.empty()) return false;
    if (i > 0 && (rules[i - 1].linear1_block_n <= rules[i].linear1_block_n ||
                  rules[i - 1].least_blocks_per_worker <= rules[i].least_blocks_per_worker))
      return false;
  }
  return rules[rules.size() - 1].least_blocks_per_worker == 0;
}

static_assert(is_ladder(kCpuTiles) && is_ladder(kSm90Tiles) && is_ladder(kSm100Tiles));
static_assert(ends_in_any(kCpuChannels) && ends_in_any(kSm90Channels) &&
              ends_in_any(kSm100Channels));
static_assert(tile_rule_of(kSm100Tiles, 8.5).block_m == 16);
static_assert(tile_rule_of(kSm100Tiles, 8.6).block_m == 32);
static_assert(tile_rule_of(kSm100Tiles, 1e9).block_m == 192);
static_assert(tile_rule_of(kCpuTiles, 0.0).block_m == 16);

}  // namespace megamoe
