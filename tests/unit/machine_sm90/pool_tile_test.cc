#include "machine/sm90/pool_tile.hpp"

#include <gtest/gtest.h>

#include <set>

#include "machine/sm90/descriptor.hpp"
#include "machine/sm90/kernel_args.hpp"
#include "machine/sm90/plans.hpp"

namespace megamoe::sm90 {
namespace {

// A tile's chunks are a permutation of it, and those of one row and of eight rows in one column
// don't share banks.
TEST(PoolTile, ChunksFillTheTileWithoutBankConflicts) {
  for (const Operands operands : {Operands::kFloat8, Operands::kBfloat16})
    for (const int block_m : kBlockSizes) {
      const int chunks = kStepDepth * element_bytes(operands) / kChunkBytes;
      std::set<int> offsets;
      for (int row = 0; row < block_m; ++row)
        for (int chunk = 0; chunk < chunks; ++chunk) {
          const int offset = token_chunk_offset(block_m, row, chunk);
          ASSERT_LT(offset, token_tile_bytes(operands, block_m));
          ASSERT_TRUE(offsets.insert(offset).second);
        }
      ASSERT_EQ(offsets.size() * kChunkBytes,
                static_cast<std::size_t>(token_tile_bytes(operands, block_m)));
      std::set<int> banks;
      for (int row = 0; row < 8; ++row)
        banks.insert(token_chunk_offset(block_m, row, 3) / kChunkBytes % 8);
      EXPECT_EQ(banks.size(), 8U);
    }
}

// Linear 2's rows lie twice in the pool: all tiles first, then rows as linear 1 leaves them, whose
// scales begin at a multiple of what a bulk copy takes.
TEST(PoolTile, ActivationsLieBehindTheTiles) {
  const Problem problem{.hidden = 1024, .intermediate = 544, .capacity = 64};
  for (const Operands operands : {Operands::kFloat8, Operands::kBfloat16}) {
    Call call;
    call.problem = problem;
    call.workspace = Workspace::plan(problem, pool_format(problem, operands), 384);
    const ActivationRow row{problem.intermediate};
    EXPECT_EQ(row.scales(), 544);
    EXPECT_EQ(row.bytes(), 544 + 32);  // 17 scales
    const std::uint64_t begin = call.workspace.linear2_rows.offset;
    const auto tiles = static_cast<std::uint64_t>(384 * 640 * element_bytes(operands));
    EXPECT_EQ(linear2_tiles(call, operands, 0).offset, begin);
    EXPECT_EQ(activation_row(call, operands, 0).offset, begin + tiles);
    EXPECT_EQ(activation_row(call, operands, 384).offset, call.workspace.linear2_scales.offset);
  }
}

// Rows of a pool of more than 2^31 bytes.
TEST(PoolTile, LargePoolsHaveWideOffsets) {
  const Problem problem{
      .experts = 8, .topk = 8, .hidden = 8192, .intermediate = 4096, .capacity = 65536};
  const Workspace w =
      Workspace::plan(problem, pool_format(problem, Operands::kBfloat16), full_pool_rows(problem));
  EXPECT_GT(w.linear2_rows.offset - w.linear1_rows.offset, std::uint64_t{1} << 32);
  EXPECT_EQ(w.linear1_rows.at(w.format.linear1_row_bytes * std::uint64_t{500'000}).offset -
                w.linear1_rows.offset,
            std::uint64_t{500'000} * 8192 * 2);
  const WeightLayout layout{Operands::kFloat8, 1 << 20, 1 << 16};
  EXPECT_EQ(layout.bytes(), std::int64_t{1 << 14} * (1 << 9) * slab_bytes(Operands::kFloat8));
}

// The descriptor's fields, bit by bit.
TEST(Descriptor, HasItsFieldsWhereWgmmaReadsThem) {
  const std::uint32_t low = tile_descriptor_low(0x3'8400);
  EXPECT_EQ(low & 0x3FFF, 0x3840U);
  EXPECT_EQ((low >> 16) & 0x3FFF, 1U);
  EXPECT_EQ(kTileDescriptorHigh & 0x3FFF, 1024U / 16);
  EXPECT_EQ(kTileDescriptorHigh >> 30, 1U);
  EXPECT_EQ(tile_descriptor_low(0x400 + 32), tile_descriptor_low(0x400) + kDescriptorNextK);
  EXPECT_EQ(tile_descriptor_low(0x400 + 64 * 128),
            tile_descriptor_low(0x400) + descriptor_next_panel(64));
}

// Blocks of a linear lie one behind the other, each step of one in a run.
TEST(WeightLayout, OffsetsAreContiguous) {
  const WeightLayout layout{Operands::kFloat8, 5 * 64, 3 * 128};
  EXPECT_EQ(layout.blocks(), 2);
  EXPECT_EQ(layout.slabs_of(1), 1);
  std::int64_t expected = 0;
  for (int block = 0; block < layout.blocks(); ++block)
    for (int step = 0; step < layout.steps(); ++step)
      for (int slab = 0; slab < layout.slabs_of(block); ++slab) {
        EXPECT_EQ(layout.offset(block, step, slab), expected);
        expected += slab_bytes(Operands::kFloat8);
      }
  EXPECT_EQ(layout.bytes(), expected);
}

}  // namespace
}  // namespace megamoe::sm90
