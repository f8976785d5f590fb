#include "machine/sm90/pack.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "megamoe/error.hpp"
#include "numerics/bfloat16.hpp"
#include "numerics/float4.hpp"
#include "numerics/float8.hpp"

namespace megamoe::sm90 {
namespace {

// The kernel's decoding, instruction by instruction, on the host.
std::uint32_t prmt(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = (std::uint64_t{high} << 32) | low;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t nibble = (selector >> (4 * i)) & 0xF;
    EXPECT_LT(nibble, 8U) << "the top bit would copy a sign";
    result |= static_cast<std::uint32_t>((bytes >> (8 * nibble)) & 0xFF) << (8 * i);
  }
  return result;
}

struct Packed {
  WeightLayout layout;
  std::vector<std::byte> codes;
  std::vector<std::int16_t> bases;

  const std::byte* slab(int row, int k) const {
    const int index = row / kSlabRows;
    return codes.data() + layout.offset(index / kBlockSlabs, k / kStepDepth, index % kBlockSlabs);
  }
  std::uint32_t word(int row, int k) const {
    std::uint32_t word;
    std::memcpy(&word,
                slab(row, k) + code_place(layout.operands, row % 64, k % 128).word_byte,
                sizeof word);
    return word;
  }
  std::uint32_t field(int row, int k) const {
    const ExponentPlace place = exponent_place(layout.operands, row % 64, k % 128 / kGroup);
    const auto byte = static_cast<std::uint32_t>(slab(row, k)[place.byte]);
    return layout.operands == Operands::kFloat8 ? (byte >> place.bit) & 0xF : byte;
  }
  // What the tensor core gets for this weight, times the row's base.
  double decoded(int row, int k) const {
    const double value =
        layout.operands == Operands::kFloat8 ? decoded8(row, k) : decoded16(row, k);
    return std::ldexp(value, bases[static_cast<std::size_t>(row)]);
  }

 private:
  double decoded8(int row, int k) const {
    const std::uint32_t w = word(row, k);
    const std::uint32_t f = field(row, k);
    const std::uint32_t low = 0x14100800U + f * 0x08080800U;
    const std::uint32_t high = 0x24201C18U + f * 0x08080808U;
    const std::uint32_t s = w & 0x77777777U;
    const int half = k % 8 / 4;
    // The permute of a half reads the four selectors of it; the other half's must not matter.
    const std::uint32_t four = half == 0 ? prmt(low, high, s & 0xFFFF) | (w & 0x80808080U)
                                         : prmt(low, high, s >> 16) | ((w << 4) & 0x80808080U);
    return static_cast<double>(
        to_float(Float8E4M3{static_cast<std::uint8_t>(four >> (8 * (k % 4)))}));
  }
  double decoded16(int row, int k) const {
    const std::uint32_t w = word(row, k);
    const int pair = k % 8 / 2;
    const int up = 4 * pair - 6;
    const std::uint32_t moved = up < 0 ? w >> -up : w << up;
    const std::uint32_t tiny = (moved & 0x01C001C0U) | ((w << (4 * pair)) & 0x80008000U);
    const auto bits = static_cast<std::uint16_t>(k % 2 == 0 ? tiny : tiny >> 16);
    const Bfloat16 factor{static_cast<std::uint16_t>(field(row, k) << 7)};
    return static_cast<double>(to_float(Bfloat16{bits}) * to_float(factor));
  }
};

struct Canonical {
  std::vector<std::uint8_t> codes, scales;
  double value(const WeightLayout& layout, int row, int k) const {
    const auto at = static_cast<std::size_t>(row * layout.depth + k);
    const std::uint8_t both = codes[at / 2];
    const Float4E2M1 code{static_cast<std::uint8_t>(k % 2 == 0 ? both & 0xF : both >> 4)};
    return std::ldexp(static_cast<double>(to_float(code)), scales[at / 32] - 127);
  }
};

Canonical random_linear(const WeightLayout& layout, int spread, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Canonical linear;
  linear.codes.resize(static_cast<std::size_t>(layout.rows * layout.depth / 2));
  linear.scales.resize(linear.codes.size() / 16);
  for (std::uint8_t& byte : linear.codes)
    byte = static_cast<std::uint8_t>(random());
  for (std::uint8_t& byte : linear.scales)
    byte = static_cast<std::uint8_t>(
        130 - static_cast<int>(random() % (static_cast<unsigned>(spread) + 1)));
  return linear;
}

Packed packed(const WeightLayout& layout, const Canonical& linear, bool is_gate_up) {
  Packed result{layout,
                std::vector<std::byte>(static_cast<std::size_t>(layout.bytes())),
                std::vector<std::int16_t>(static_cast<std::size_t>(layout.padded_rows()))};
  pack(layout, {linear.codes.data(), linear.scales.data(), is_gate_up}, result.codes, result.bases);
  return result;
}

// Decoding what was packed gives every weight back, exactly, for ragged row and K counts too.
TEST(Pack, DecodesToTheSameWeights) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  for (const Operands operands : {Operands::kFloat8, Operands::kBfloat16})
    for (const auto& [rows, depth] : {std::pair{64, 32}, {128, 288}, {320, 128}, {576, 160}}) {
      const WeightLayout layout{operands, rows, depth};
      const Canonical linear = random_linear(layout, kTopField8, kSeed);
      const Packed result = packed(layout, linear, false);
      for (int row = 0; row < rows; ++row)
        for (int k = 0; k < depth; ++k)
          ASSERT_EQ(result.decoded(row, k), linear.value(layout, row, k)) << row << ' ' << k;
      for (int row = 0; row < rows; ++row)
        for (int k = depth; k < layout.steps() * kStepDepth; ++k)
          ASSERT_EQ(result.decoded(row, k), 0.0) << "padding";
    }
}

// Rows beyond the last are zeros: H need not be a multiple of 64.
TEST(Pack, PadsRowsWithZeros) {
  const WeightLayout layout{Operands::kFloat8, 96, 64};
  const Packed result = packed(layout, random_linear(layout, 3, 5), false);
  for (int row = 96; row < layout.padded_rows(); ++row)
    for (int k = 0; k < 64; ++k)
      ASSERT_EQ(result.decoded(row, k), 0.0);
}

// Linear 1 puts each gate eight rows over its up.
TEST(Pack, InterleavesGateAndUpByEight) {
  const int intermediate = 96;
  const WeightLayout layout{Operands::kFloat8, 2 * intermediate, 32};
  const Canonical linear = random_linear(layout, 2, 6);
  const Packed result = packed(layout, linear, true);
  for (int column = 0; column < intermediate; ++column) {
    const int gate = column / 8 * 16 + column % 8;
    for (int k = 0; k < 32; ++k) {
      ASSERT_EQ(result.decoded(gate, k), linear.value(layout, column, k));
      ASSERT_EQ(result.decoded(gate + 8, k), linear.value(layout, intermediate + column, k));
    }
  }
}

// A row that spans too much is refused by FP8, never flushed, and held by bf16; zero groups don't
// count.
TEST(Pack, RefusesOrHoldsWideRows) {
  WeightLayout layout{Operands::kFloat8, 64, 64};
  Canonical linear = random_linear(layout, 0, 7);
  const auto set_group = [&](int row, int group, std::uint8_t scale, std::uint8_t codes) {
    linear.scales[static_cast<std::size_t>(row * 2 + group)] = scale;
    for (int i = 0; i < 16; ++i)
      linear.codes[static_cast<std::size_t>(row * 32 + group * 16 + i)] = codes;
  };
  set_group(3, 0, 130, 0x77);
  set_group(3, 1, 119, 0x11);
  EXPECT_TRUE(fits_float8(layout, {linear.codes.data(), linear.scales.data(), false}));
  set_group(3, 1, 1, 0x80);  // +0 and -0
  EXPECT_TRUE(fits_float8(layout, {linear.codes.data(), linear.scales.data(), false}));
  set_group(3, 1, 118, 0x11);
  EXPECT_FALSE(fits_float8(layout, {linear.codes.data(), linear.scales.data(), false}));
  EXPECT_THROW(packed(layout, linear, false), Error);
  set_group(3, 1, 10, 0x11);
  layout.operands = Operands::kBfloat16;
  const Packed result = packed(layout, linear, false);
  for (int k = 0; k < 64; ++k)
    ASSERT_EQ(result.decoded(3, k), linear.value(layout, 3, k));
}

// A NaN scale makes the row's base NaN and leaves the other rows alone.
TEST(Pack, MarksNanRows) {
  const WeightLayout layout{Operands::kFloat8, 64, 64};
  Canonical linear = random_linear(layout, 4, 8);
  linear.scales[2 * 5 + 1] = 255;
  const Packed result = packed(layout, linear, false);
  for (int row = 0; row < 64; ++row)
    EXPECT_EQ(result.bases[static_cast<std::size_t>(row)] == kNanBase, row == 5);
}

}  // namespace
}  // namespace megamoe::sm90
