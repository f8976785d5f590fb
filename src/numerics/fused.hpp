#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace megamoe {

// What the compiler evaluates itself, as no builtin is constexpr in all of them. The product of two
// fp32 is exact in fp64; the sum is rounded to odd there, after which rounding to fp32 rounds once.
// (fp64 has more than 24 + 2 bits.) An overflow is no constant expression.
constexpr float fused_multiply_add_by_parts(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double from_addend = sum - product;
  const double lost = (product - (sum - from_addend)) + (addend - from_addend);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool is_finite = (bits & 0x7FF0'0000'0000'0000U) != 0x7FF0'0000'0000'0000U;
  if (is_finite && lost != 0 && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1U : ~0ULL;
  return static_cast<float>(std::bit_cast<double>(bits));
}

// a * b + c, rounded once, on every machine: one instruction where there is one, else the C
// library's.
constexpr float fused_multiply_add(float a, float b, float c) {
  if (std::is_constant_evaluated()) return fused_multiply_add_by_parts(a, b, c);
  return __builtin_fmaf(a, b, c);
}

static_assert(fused_multiply_add(0x1.000002p0F, 0x1.000002p0F, -0x1.000004p0F) == 0x1p-46F);

}  // namespace megamoe
