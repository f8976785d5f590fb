#pragma once

#include <bit>
#include <cstdint>

#include "numerics/fused.hpp"

namespace megamoe {

// The constants of exponential(), for the vector forms that repeat it.
struct ExponentialTerms {
  // exp is 0 in fp32 below the first (2^-150, half of the least subnormal) and infinite above the
  // second.
  static constexpr float kLowest = -104.0F;
  static constexpr float kHighest = 89.0F;
  static constexpr float kLog2E = 0x1.715476p0F;
  // Added to a value of magnitude below 2^22 it leaves the nearest integer in the low bits.
  static constexpr float kToInteger = 0x1.8p23F;
  static constexpr float kLn2High = 0x1.62e43p-1F;
  static constexpr float kLn2Low = -0x1.05c61p-29F;
  // e^r = 1 + r + r^2 (kC2 + r (kC3 + ...)) on |r| <= ln(2) / 2, to within 3.2e-9 of the value: a
  // minimax fit of the relative error, with each coefficient rounded to fp32 before the next was
  // fitted.
  static constexpr float kC2 = 0x1.fffffcp-2F;
  static constexpr float kC3 = 0x1.55548cp-3F;
  static constexpr float kC4 = 0x1.555858p-5F;
  static constexpr float kC5 = 0x1.123de2p-7F;
  static constexpr float kC6 = 0x1.6ac78ap-10F;
};

constexpr float power_of_two(std::int32_t exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// e^x by additions, multiplications, fused multiply-adds and operations on bits, so that a vector
// form that does the same steps, in this order, returns the same bits. Needs round-to-nearest and
// subnormals that are not flushed. Within 1.02 units in the last place over all fp32 (1.013 is the
// largest error there is), subnormal results included; infinity above 88.72284, 0 below -103.97208;
// exp(+-0) is 1, exp(-infinity) 0, exp(NaN) NaN. A constant expression where the result is normal.
constexpr float exponential(float x) {
  using Terms = ExponentialTerms;
  // Comparisons that are false for a NaN leave it in place; it then reaches the result through r.
  const float above = x < Terms::kLowest ? Terms::kLowest : x;
  const float bounded = above > Terms::kHighest ? Terms::kHighest : above;

  const float shifted = fused_multiply_add(bounded, Terms::kLog2E, Terms::kToInteger);
  const float n = shifted - Terms::kToInteger;
  float r = fused_multiply_add(n, -Terms::kLn2High, bounded);  // exact
  r = fused_multiply_add(n, -Terms::kLn2Low, r);

  float series = fused_multiply_add(Terms::kC6, r, Terms::kC5);
  series = fused_multiply_add(series, r, Terms::kC4);
  series = fused_multiply_add(series, r, Terms::kC3);
  series = fused_multiply_add(series, r, Terms::kC2);
  const float value = fused_multiply_add(series, r * r, r) + 1.0F;

  // 2^n in two factors, as n = 128 and n < -126 are beyond one fp32; the first product is exact.
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                  std::bit_cast<std::uint32_t>(Terms::kToInteger));
  const std::int32_t half = exponent >> 1;
  return value * power_of_two(half) * power_of_two(exponent - half);
}

static_assert(exponential(0.0F) == 1.0F && exponential(1.0F) == 0x1.5bf0a8p1F);

}  // namespace megamoe
