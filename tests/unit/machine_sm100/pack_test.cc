#include "machine/sm100/pack.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace megamoe::sm100 {
namespace {

struct Linear {
  WeightLayout layout;
  bool is_gate_up;
  std::vector<std::uint8_t> codes, scales;
  std::vector<std::byte> packed_codes, packed_scales;

  Linear(int rows, int depth, bool gate_up) : layout{rows, depth}, is_gate_up(gate_up) {
    std::mt19937 random(static_cast<unsigned>(rows * 31 + depth));
    codes.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(depth) / 2);
    scales.resize(codes.size() / 16);
    for (auto& byte : codes)
      byte = static_cast<std::uint8_t>(random());
    for (auto& byte : scales)
      byte = static_cast<std::uint8_t>(random());
    packed_codes.resize(static_cast<std::size_t>(layout.code_bytes()), std::byte{0xAA});
    packed_scales.resize(static_cast<std::size_t>(layout.scale_bytes()), std::byte{0xAA});
    pack(layout, {codes.data(), scales.data(), gate_up}, packed_codes, packed_scales);
  }

  // The definition, in the other direction: what lies at a packed row and K.
  int canonical_row(int packed_row) const {
    if (!is_gate_up) return packed_row;
    const bool is_up = packed_row % 16 >= 8;
    return packed_row / 16 * 8 + packed_row % 8 + (is_up ? layout.rows / 2 : 0);
  }
  int canonical_code(int packed_row, int k) const {
    if (packed_row >= layout.rows || k >= layout.depth) return 0;
    const auto at = static_cast<std::size_t>(canonical_row(packed_row)) *
                        static_cast<std::size_t>(layout.depth) +
                    static_cast<std::size_t>(k);
    return at % 2 == 0 ? codes[at / 2] & 15 : codes[at / 2] >> 4;
  }
  int canonical_scale(int packed_row, int k) const {
    if (packed_row >= layout.rows || k >= layout.depth) return kPaddingScale;
    const auto groups = static_cast<std::size_t>(layout.depth / 32);
    return scales[static_cast<std::size_t>(canonical_row(packed_row)) * groups +
                  static_cast<std::size_t>(k) / 32];
  }
  int packed_code(int row, int k) const {
    const auto byte =
        static_cast<int>(packed_codes[static_cast<std::size_t>(row * layout.row_bytes() + k / 2)]);
    return k % 2 == 0 ? byte & 15 : byte >> 4;
  }
  // Tile of 512 bytes of block and step; run row % 32 of 16 bytes; word row / 32; byte of the
  // group.
  int packed_scale(int row, int k) const {
    const int tile = row / 128 * layout.steps() + k / 128;
    const int in_tile = row % 32 * 16 + row % 128 / 32 * 4 + k % 128 / 32;
    return static_cast<int>(packed_scales[static_cast<std::size_t>(tile * 512 + in_tile)]);
  }
};

TEST(Pack, PutsEveryCodeAndScaleInItsPlace) {
  for (const bool is_gate_up : {true, false})
    for (const int rows : {64, 256, 320, 576})
      for (const int depth : {32, 128, 160, 512}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << depth << " gate_up " << is_gate_up);
        const Linear linear(rows, depth, is_gate_up);
        ASSERT_EQ(linear.layout.padded_rows() % 256, 0);
        for (int row = 0; row < linear.layout.padded_rows(); ++row)
          for (int k = 0; k < linear.layout.padded_depth(); ++k) {
            ASSERT_EQ(linear.packed_code(row, k), linear.canonical_code(row, k))
                << "code of row " << row << ", k " << k;
            ASSERT_EQ(linear.packed_scale(row, k), linear.canonical_scale(row, k))
                << "scale of row " << row << ", k " << k;
          }
      }
}

// What threads rely on that pack different blocks at the same time.
TEST(Pack, ABlockOfRowsTouchesItsOwnPlaceAlone) {
  const Linear whole(576, 160, true);
  const WeightLayout& layout = whole.layout;
  for (int block = 0; block < layout.blocks(); ++block) {
    SCOPED_TRACE(block);
    std::vector<std::byte> codes(whole.packed_codes.size(), std::byte{0xAA});
    std::vector<std::byte> scales(whole.packed_scales.size(), std::byte{0xAA});
    pack_blocks(layout,
                {whole.codes.data(), whole.scales.data(), true},
                {.first = block, .count = 1},
                codes,
                scales);
    const auto expect_own = [&](const std::vector<std::byte>& got,
                                const std::vector<std::byte>& wanted) {
      const std::size_t share = got.size() / static_cast<std::size_t>(layout.blocks());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i],
                  i / share == static_cast<std::size_t>(block) ? wanted[i] : std::byte{0xAA})
            << "byte " << i;
    };
    expect_own(codes, whole.packed_codes);
    expect_own(scales, whole.packed_scales);
  }
}

// A gate and its up are eight rows apart in every group of sixteen: one thread's two rows.
TEST(Pack, GateAndUpAreEightRowsApart) {
  constexpr int kIntermediate = 96;
  for (int row = 0; row < 2 * kIntermediate; ++row) {
    const int canonical = gpu::gate_up_row(row, kIntermediate);
    if (row % 16 < 8)
      EXPECT_EQ(gpu::gate_up_row(row + 8, kIntermediate), canonical + kIntermediate);
    else
      EXPECT_GE(canonical, kIntermediate);
  }
}

}  // namespace
}  // namespace megamoe::sm100
