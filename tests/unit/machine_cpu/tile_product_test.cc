// The accumulators themselves: close to fp64, and in the one order of summation that is documented.
#include <gtest/gtest.h>

#include <cstring>

#include "machine/cpu/tile/tile_functions.hpp"
#include "sets.hpp"
#include "tile_case.hpp"

namespace megamoe::cpu {
namespace {

struct ProductCase {
  Expert expert;
  Tokens tokens;
};

// The sums of linear 2's first 64 channels.
std::vector<float> sums_of(InstructionSet set, const ProductCase& given) {
  const int k = given.expert.problem.intermediate;
  const AlignedBytes packed = given.expert.packed_linear2();
  const AlignedBytes pool = pool_of(TileKernel(set), given.tokens);
  const PackedMatrix matrix{packed.data(), given.expert.problem.hidden, k};
  const auto scratch = std::make_unique<TileScratch>();
  functions_of(set)->multiply({.panels = {panel_of(matrix, 0), panel_of(matrix, 1)},
                               .num_panels = 2,
                               .k = k,
                               .rows = {.data = pool.data(), .stride = row_bytes(k)},
                               .num_rows = given.tokens.num_rows},
                              *scratch);
  return {scratch->sums, scratch->sums + 64 * given.tokens.num_rows};
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

ProductCase case_of(unsigned seed, int k, int rows, int scale_spread) {
  Random random(seed);
  return {.expert = random_expert(random, 64, k, ScaleBytes::between(120 - scale_spread, 120)),
          .tokens = random_tokens(random, rows, k, ScaleBytes::between(118 - scale_spread, 118))};
}

using TileProductTest = SetTest;

TEST_P(TileProductTest, SumsAreWithinOneInAHundredThousandOfFp64) {
  for (const int k : {32, 96, 2880, 4096, 8192}) {
    SCOPED_TRACE(testing::Message() << "seed 5, K " << k);
    const ProductCase given = case_of(5, k, 13, 4);
    const std::vector<float> actual = sums_of(GetParam(), given);
    std::vector<float> expected;
    for (int row = 0; row < given.tokens.num_rows; ++row)
      for (int channel = 0; channel < 64; ++channel)
        expected.push_back(static_cast<float>(
            dot(&given.expert.linear2[static_cast<std::size_t>(channel * k / 2)],
                &given.expert.linear2_scale[static_cast<std::size_t>(channel * k / 32)],
                given.tokens.codes_of(row),
                given.tokens.scales_of(row),
                k)));
    EXPECT_LT(relative_error(actual.data(), expected.data(), static_cast<int>(actual.size())),
              1e-5);
  }
}

// Fused or not, wide or narrow: products are exact and the order is the same.
TEST_P(TileProductTest, SumsHaveTheBitsOfTheScalarSet) {
  // Two fp32 additions per dot product are what the manuals promise; a computer that sums otherwise
  // is a machine kind of its own.
  const ProductCase probe = case_of(6, 512, 3, 0);
  if (GetParam() == InstructionSet::kAvx512Bf16 &&
      !have_same_bits(sums_of(GetParam(), probe), sums_of(InstructionSet::kScalar, probe)))
    GTEST_SKIP() << "bf16 dot products of this computer round in an order of their own";
  for (const int spread : {0, 10, kLargestFoldedShift}) {
    for (const int rows : {1, 2, 3, 4, 5, 12, 13, 25, 49}) {
      SCOPED_TRACE(testing::Message() << "seed 7, rows " << rows << ", spread " << spread);
      ProductCase given = case_of(7, 352, rows, spread);
      // Zeros everywhere, in codes and in tokens, so that decoded zeros meet large tokens.
      for (std::size_t i = 0; i < given.expert.linear2.size(); i += 3)
        given.expert.linear2[i] &= 0xF8;
      for (std::size_t i = 0; i < given.tokens.codes.size(); i += 5)
        given.tokens.codes[i] = 0;
      EXPECT_TRUE(
          have_same_bits(sums_of(GetParam(), given), sums_of(InstructionSet::kScalar, given)));
    }
  }
}

// x - x, with the largest tokens on weights of zero, whose scales are as far as can be above the
// least of their rows: what a set makes of a scaled zero must not show.
TEST_P(TileProductTest, SumsThatCancelAreExactlyZero) {
  for (const int exponent : {kLeastFoldedExponent, 0, kLargestFoldedExponent}) {
    SCOPED_TRACE(testing::Message() << "seed 8, exponent " << exponent);
    const int byte = 127 + exponent;
    Random random(8);
    ProductCase given{.expert = random_expert(random, 64, 96, ScaleBytes::between(100, 100)),
                      .tokens = random_tokens(random, 5, 96, ScaleBytes::between(byte, byte))};
    std::fill(given.tokens.codes.begin(), given.tokens.codes.end(), std::uint8_t{0});
    for (int row = 0; row < 5; ++row) {
      given.tokens.codes_of(row)[0] = static_cast<std::uint8_t>(0x01 + row);
      given.tokens.codes_of(row)[64] = static_cast<std::uint8_t>(0x81 + row);
      given.tokens.codes_of(row)[2] = given.tokens.codes_of(row)[67] = 0x7E;
    }
    for (std::size_t row = 0; row < 64; ++row) {
      std::uint8_t* const codes = &given.expert.linear2[row * 48];
      codes[1] = row % 2 == 0 ? 0x80 : 0x08;  // elements 2 and 3: zeros of both signs
      std::copy_n(codes, 16, codes + 32);
      for (const std::size_t group : {0U, 2U})
        given.expert.linear2_scale[row * 3 + group] = 100 + kLargestFoldedShift;
    }
    for (const float sum : sums_of(GetParam(), given))
      ASSERT_EQ(sum, 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, TileProductTest, all_sets(), set_label);

}  // namespace
}  // namespace megamoe::cpu
