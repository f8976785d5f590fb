// Pool rows keep every E4M3 code under every scale exactly.
#include "machine/cpu/tile/pool_row.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "numerics/bfloat16.hpp"
#include "numerics/float8.hpp"
#include "sets.hpp"
#include "tile_case.hpp"

namespace megamoe::cpu {
namespace {

using PoolRowTest = SetTest;

Bfloat16 value_in(const std::byte* row, int k) {
  Bfloat16 value;
  std::memcpy(&value, row + 2 * static_cast<std::size_t>(k), sizeof value);
  return value;
}

TEST_P(PoolRowTest, KeepsEveryCodeUnderEveryScale) {
  std::vector<std::uint8_t> codes(256);
  for (unsigned code = 0; code < 256; ++code)
    codes[code] = static_cast<std::uint8_t>(code);
  AlignedBytes row(row_bytes(256));
  for (unsigned byte = 0; byte < 255; ++byte) {
    const std::vector<std::uint8_t> scales(8, static_cast<std::uint8_t>(byte));
    kernel_.store_row(codes.data(), scales.data(), 256, row.data());
    for (int k = 0; k < 256; ++k) {
      const float code = to_float(Float8E4M3{codes[static_cast<std::size_t>(k)]});
      const Ue8m0 stored{row_scales(row.data(), 256)[k / 32]};
      ASSERT_EQ(stored.bits, byte);
      const float value = to_float(value_in(row.data(), k));
      if (std::isnan(code)) {
        ASSERT_TRUE(std::isnan(value)) << k;
        continue;
      }
      const double expected = std::ldexp(static_cast<double>(code), static_cast<int>(byte) - 127);
      ASSERT_EQ(std::ldexp(static_cast<double>(value), remaining_exponent(stored)), expected)
          << "code " << k << " scale " << byte;
    }
    ASSERT_EQ(has_folded_scales(row.data(), 256), is_folded(Ue8m0{scales[0]})) << byte;
  }
}

TEST_P(PoolRowTest, GroupsOfZerosDoNotWidenARow) {
  const std::vector<std::uint8_t> codes = [] {
    std::vector<std::uint8_t> all(96, 0x38);
    std::fill_n(all.begin() + 32, 32, std::uint8_t{0x80});
    return all;
  }();
  const std::uint8_t scales[3] = {120, 0, 121};
  AlignedBytes row(row_bytes(96));
  kernel_.store_row(codes.data(), scales, 96, row.data());
  EXPECT_TRUE(has_folded_scales(row.data(), 96));
  for (int k = 32; k < 64; ++k)
    EXPECT_EQ(to_float(value_in(row.data(), k)), 0.0F);
}

TEST_P(PoolRowTest, ANanScaleMakesItsGroupNan) {
  for (const std::uint8_t code : {std::uint8_t{0}, std::uint8_t{0x38}}) {
    const std::vector<std::uint8_t> codes(64, code);
    const std::uint8_t scales[2] = {127, 255};
    AlignedBytes row(row_bytes(64));
    kernel_.store_row(codes.data(), scales, 64, row.data());
    for (int k = 0; k < 64; ++k)
      EXPECT_EQ(is_nan(value_in(row.data(), k)), k >= 32) << k;
    EXPECT_EQ(row_scales(row.data(), 64)[1], 255);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, PoolRowTest, all_sets(), set_label);

}  // namespace
}  // namespace megamoe::cpu
