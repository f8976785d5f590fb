// The packed layout holds every code and every scale of the canonical one, each in its place.
#include "machine/cpu/tile/packed_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tile_case.hpp"

namespace megamoe::cpu {
namespace {

constexpr std::size_t kElements = std::size_t{4096} * 4096;
static_assert(packed_bytes(4096, 4096) < (kElements / 2 + kElements / 32) * 1.005,
              "packing costs next to no memory");
static_assert(packed_bytes(64, 96) % 64 == 0);

int code_in(const Panel& panel, int lane, int k) {
  std::uint32_t word = 0;
  std::memcpy(&word, panel.codes + 4 * (k / 8 * kPanelRows + lane), sizeof word);
  return static_cast<int>((word >> (4 * (k % 8 / 2) + 16 * (k % 2))) & 15U);
}

int code_in(const std::vector<std::uint8_t>& codes, int row, int k, int width) {
  const std::uint8_t pair = codes[static_cast<std::size_t>((row * width + k) / 2)];
  return k % 2 == 0 ? pair & 15 : pair >> 4;
}

bool is_zero_group(const std::vector<std::uint8_t>& codes, int row, int group, int width) {
  for (int k = 32 * group; k < 32 * group + 32; ++k)
    if ((code_in(codes, row, k, width) & 7) != 0) return false;
  return true;
}

// Row `row` of the canonical matrix is lane `lane` of the panel.
void expect_row(const Panel& panel,
                int lane,
                const std::vector<std::uint8_t>& codes,
                const std::vector<std::uint8_t>& scales,
                int row,
                int width) {
  for (int k = 0; k < width; ++k)
    ASSERT_EQ(code_in(panel, lane, k), code_in(codes, row, k, width))
        << "row " << row << " k " << k;
  EXPECT_EQ(panel.header->scale[lane], std::ldexp(1.0F, panel.header->exponent[lane]));
  for (int group = 0; group < width / 32; ++group) {
    if (is_zero_group(codes, row, group, width)) continue;
    const int shift = panel.shifts[group * kPanelRows + lane];
    EXPECT_EQ(panel.header->exponent[lane] + shift,
              scales[static_cast<std::size_t>(row * width / 32 + group)] - 127)
        << "row " << row << " group " << group;
  }
}

TEST(PackedWeightsTest, KeepsEveryCodeAndScale) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const int hidden = 32 * static_cast<int>(1 + random() % 5);
    const int intermediate = 32 * static_cast<int>(1 + random() % 5);
    Expert expert = random_expert(random, hidden, intermediate, ScaleBytes::between(0, 254));
    std::fill_n(expert.linear1.begin(), 16, std::uint8_t{0x80});  // a group of zeros, some negative
    const AlignedBytes linear1 = expert.packed_linear1();
    const AlignedBytes linear2 = expert.packed_linear2();
    for (int channel = 0; channel < intermediate; ++channel) {
      const Panel panel = panel_of({linear1.data(), 2 * intermediate, hidden}, channel / 16);
      expect_row(panel, channel % 16, expert.linear1, expert.linear1_scale, channel, hidden);
      expect_row(panel,
                 16 + channel % 16,
                 expert.linear1,
                 expert.linear1_scale,
                 intermediate + channel,
                 hidden);
    }
    for (int channel = 0; channel < hidden; ++channel)
      expect_row(panel_of({linear2.data(), hidden, intermediate}, channel / 32),
                 channel % 32,
                 expert.linear2,
                 expert.linear2_scale,
                 channel,
                 intermediate);
  }
}

TEST(PackedWeightsTest, MarksWidePanelsAndNanRows) {
  Random random(4);
  Expert expert = random_expert(random, 128, 64, ScaleBytes::between(120, 120));
  std::fill(expert.linear2.begin(), expert.linear2.end(), std::uint8_t{0x11});
  const auto panel = [&](const AlignedBytes& packed, int index) {
    return panel_of({packed.data(), 128, 64}, index);
  };
  expert.linear2_scale[2 * 5] = 120 + kLargestFoldedShift;   // panel 0: just within
  expert.linear2_scale[2 * 40] = 121 + kLargestFoldedShift;  // panel 1: just beyond
  expert.linear2_scale[2 * 70] = 255;                        // panel 2, row 6
  std::fill_n(expert.linear2.begin() + 32 * 100, 16, std::uint8_t{0x88});
  expert.linear2_scale[2 * 100] = 0;  // panel 3: only of zeros
  const AlignedBytes packed = expert.packed_linear2();
  EXPECT_EQ(panel(packed, 0).header->is_wide, 0);
  EXPECT_EQ(panel(packed, 1).header->is_wide, 1);
  EXPECT_EQ(panel(packed, 2).header->is_wide, 0);
  EXPECT_EQ(panel(packed, 3).header->is_wide, 0);
  for (int lane = 0; lane < kPanelRows; ++lane)
    EXPECT_EQ(std::isnan(panel(packed, 2).header->scale[lane]), lane == 6) << lane;
}

}  // namespace
}  // namespace megamoe::cpu
