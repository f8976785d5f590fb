#include "machine/sm90/fragment.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace megamoe::sm90 {
namespace {

constexpr Operands kBoth[] = {Operands::kFloat8, Operands::kBfloat16};

// No two codes of a slab share a bit, and together with the exponents they fill it.
TEST(Fragment, CodesAndExponentsFillTheSlab) {
  for (const Operands operands : kBoth) {
    std::set<std::pair<int, int>> bits;
    for (int row = 0; row < kSlabRows; ++row) {
      for (int k = 0; k < kStepDepth; ++k) {
        const CodePlace place = code_place(operands, row, k);
        ASSERT_LT(place.word_byte, kSlabCodeBytes);
        for (const int bit : {place.magnitude_bit,
                              place.magnitude_bit + 1,
                              place.magnitude_bit + 2,
                              place.sign_bit})
          ASSERT_TRUE(bits.insert({place.word_byte, bit}).second) << row << ' ' << k;
      }
    }
    EXPECT_EQ(bits.size(), static_cast<std::size_t>(kSlabCodeBytes) * 8);
    std::set<std::pair<int, int>> fields;
    for (int row = 0; row < kSlabRows; ++row)
      for (int group = 0; group < kGroupsPerStep; ++group) {
        const ExponentPlace place = exponent_place(operands, row, group);
        ASSERT_GE(place.byte, kSlabCodeBytes);
        ASSERT_LT(place.byte, slab_bytes(operands));
        ASSERT_TRUE(fields.insert({place.byte, place.bit}).second);
      }
  }
}

// wgmma's register operand: in each k-step, lane l holds row l / 4 and the one 8 below, at K
// positions that start at l % 4 times the width of a register, and again half a k-step on. A code
// must be where its thread finds it, and the token's value of the same k at that very position.
TEST(Fragment, ThreadsHoldWhatTheirTokensMeet) {
  for (const Operands operands : kBoth) {
    const int in_register = operands == Operands::kFloat8 ? 4 : 2;
    std::set<int> positions;
    for (int k = 0; k < kStepDepth; ++k) {
      const int position = token_position(operands, k);
      EXPECT_TRUE(positions.insert(position).second);
      const int in_k_step = position % (8 * in_register);
      const int quad = in_k_step % (4 * in_register) / in_register;
      EXPECT_EQ(quad, k / kGroup) << "the thread's group";
      for (int row = 0; row < kSlabRows; ++row) {
        const int vector = code_place(operands, row, k).word_byte / 16;
        EXPECT_EQ(vector % 32, row % 8 * 4 + quad) << "the lane";
        EXPECT_EQ(vector / 64, row / 16) << "the warp";
      }
    }
    EXPECT_EQ(positions.size(), static_cast<std::size_t>(kStepDepth));
  }
}

}  // namespace
}  // namespace megamoe::sm90
