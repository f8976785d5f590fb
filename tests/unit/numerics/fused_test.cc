#include "numerics/fused.hpp"

#include <gtest/gtest.h>

#include <random>

#include "float_bits.hpp"

namespace megamoe {
namespace {

// What the compiler evaluates must be what the processor returns, or constants and run time
// disagree.
TEST(FusedMultiplyAdd, ByPartsEqualsTheInstruction) {
  constexpr std::uint32_t kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937 generator(kSeed);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int trial = 0; trial < 200'000; ++trial) {
    const float a = float_of(random());
    const float b = float_of(random());
    // Half of the addends nearly cancel the product: there a double rounding would show.
    const float c = trial % 2 == 0 ? float_of(random()) : -(a * b) * (1.0F + 0x1p-20F);
    const float wanted = std::fma(a, b, c);
    const float got = fused_multiply_add_by_parts(a, b, c);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << a << ' ' << b << ' ' << c;
    } else {
      ASSERT_EQ(bits_of(got), bits_of(wanted)) << a << ' ' << b << ' ' << c;
    }
    const float direct = fused_multiply_add(a, b, c);
    ASSERT_TRUE(bits_of(direct) == bits_of(wanted) || std::isnan(wanted))
        << a << ' ' << b << ' ' << c;
  }
}

// The product lies exactly between two fp32 and the addend, far below the last place of fp64,
// decides.
TEST(FusedMultiplyAdd, ATinyAddendBreaksATie) {
  const float a = 1.0F + 0x1p-12F;
  const float tie = a * a;  // 1 + 2^-11 + 2^-24 is a tie; the even neighbour is below
  EXPECT_EQ(fused_multiply_add_by_parts(a, a, 0.0F), tie);
  EXPECT_EQ(fused_multiply_add_by_parts(a, a, 0x1p-100F), next_above(tie));
  EXPECT_EQ(fused_multiply_add_by_parts(a, a, -0x1p-100F), tie);
  EXPECT_EQ(std::fma(a, a, 0x1p-100F), next_above(tie));
}

}  // namespace
}  // namespace megamoe
