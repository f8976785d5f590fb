#include <gtest/gtest.h>

#include <set>

#include "machine/sm100/kernel_args.hpp"
#include "machine/sm100/plans.hpp"

namespace megamoe::sm100 {
namespace {

// Every row's word is its own, and where the copy into tensor memory puts it for that row: run i
// of 16 bytes goes to lane i, its words to four columns.
TEST(Scales, WordsAreWhereLanesAndColumnsAsk) {
  std::set<int> words;
  for (int row = 0; row < 256; ++row) {
    const int word = scale_word(row);
    words.insert(word);
    const int copy = word / kScaleRows;
    const int lane = word % kScaleRows / 4;
    const int column = copy * kScaleCopyColumns + word % 4;
    EXPECT_EQ(lane, row % 32);
    EXPECT_EQ(column, row / 32);
  }
  EXPECT_EQ(words.size(), 256U);
  EXPECT_EQ(*words.rbegin(), 255);
}

// All chunks and scales of a pool block are apart and inside its memory, whatever the tile.
TEST(PoolTile, PlacesAreApartAndInside) {
  for (const int block_m : kBlockSizes) {
    for (const int depth : {32, 160, 512}) {
      SCOPED_TRACE(testing::Message() << block_m << " x " << depth);
      std::set<std::int64_t> chunks;
      std::set<std::int64_t> scales;
      for (int step = 0; step < steps_of(depth); ++step)
        for (int row = 0; row < block_m; ++row) {
          scales.insert(token_scale_offset(block_m, step, row));
          for (int chunk = 0; chunk < 8; ++chunk)
            chunks.insert(token_chunk_offset(block_m, step, row, chunk));
        }
      const auto rows = static_cast<std::size_t>(block_m * steps_of(depth));
      EXPECT_EQ(chunks.size(), rows * 8);
      EXPECT_EQ(*chunks.rbegin() + 16, std::int64_t{block_m} * pool_row_bytes(depth));
      EXPECT_EQ(scales.size(), rows);
      EXPECT_LE(*scales.rbegin() + 4, std::int64_t{block_m} * pool_scale_bytes(depth));
    }
  }
}

// The second CTA's half of the tokens begins at a group of eight rows, so that the swizzle in its
// own shared memory is that of the pool.
TEST(PoolTile, HalvesAreWholeSwizzleGroups) {
  for (int rows = 1; rows <= 192; ++rows) {
    EXPECT_EQ(half_tokens(rows) % gpu::kSwizzleRows, 0);
    EXPECT_GE(2 * half_tokens(rows), rows);
    EXPECT_LT(mma_tokens(rows), rows + kTokenGranule);
  }
  for (const int block_m : kBlockSizes)
    EXPECT_LE(half_tokens(block_m) * kRowBytes, without_stages(block_m).half_tile_bytes());
}

// Blocks come in pairs, whose activations fill linear 2's steps exactly.
TEST(WeightLayout, BlocksCoverBothLinears) {
  for (const int intermediate : {32, 96, 128, 512, 1408, 2880, 3072}) {
    const Problem problem{.hidden = 2880, .intermediate = intermediate};
    const WeightLayout linear1 = layout_of(problem, Phase::kLinear1);
    const WeightLayout linear2 = layout_of(problem, Phase::kLinear2);
    EXPECT_EQ(linear1.blocks() % 2, 0);
    EXPECT_EQ(linear2.blocks() % 2, 0);
    EXPECT_GE(linear1.padded_rows(), 2 * intermediate);
    EXPECT_EQ(linear1.blocks() * kBlockColumns, linear2.padded_depth());
    EXPECT_EQ(linear2.row_bytes() % 32, 0) << "what a tensor map asks of a stride";
  }
}

TEST(PoolFormat, HoldsEveryTile) {
  const Problem problem{.hidden = 7168, .intermediate = 2048};
  const PoolFormat format = pool_format(problem);
  EXPECT_EQ(format.linear1_row_bytes, 7168U);
  EXPECT_EQ(format.linear1_scale_bytes, 16U * 56);
  EXPECT_EQ(format.linear2_row_bytes, 2048U);
  EXPECT_EQ(format.linear2_scale_bytes, 16U * 16);
}

}  // namespace
}  // namespace megamoe::sm100
