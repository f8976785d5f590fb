#include "numerics/ue8m0.hpp"

#include <gtest/gtest.h>

#include "float_bits.hpp"

namespace megamoe {
namespace {

TEST(Ue8m0, EveryByteIsAPowerOfTwoAndTheLastIsNan) {
  for (int bits = 0; bits < 255; ++bits) {
    const Ue8m0 scale{static_cast<std::uint8_t>(bits)};
    EXPECT_EQ(to_float(scale), std::ldexp(1.0, bits - 127)) << bits;
    EXPECT_EQ(scale.exponent(), bits - 127);
    EXPECT_FALSE(is_nan(scale));
  }
  EXPECT_TRUE(std::isnan(to_float(Ue8m0{255})));
  EXPECT_TRUE(is_nan(Ue8m0{255}));
}

// A zero-initialised scale is 2^-127, a subnormal, not zero.
TEST(Ue8m0, ByteZeroIsASubnormal) {
  EXPECT_EQ(bits_of(to_float(Ue8m0{0})), 0x00400000U);
}

TEST(Ue8m0, ReciprocalsAreExactAndNormal) {
  for (int bits = 0; bits <= 253; ++bits) {
    const float factor = reciprocal(Ue8m0{static_cast<std::uint8_t>(bits)});
    EXPECT_EQ(factor, std::ldexp(1.0, 127 - bits)) << bits;
    EXPECT_TRUE(std::isnormal(factor)) << bits;
  }
}

}  // namespace
}  // namespace megamoe
