#pragma once

#include <cstddef>
#include <cstdint>

#include "base/math.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe::cpu {

// A row of either pool, as the tile kernel reads it: k bf16 values, then k / 32 scale bytes.
//
// A value is its E4M3 code times its group's scale, exactly, when the scale's exponent is within
// the bounds below, and its code alone otherwise; the scale byte says which. A row all of whose
// groups are folded is multiplied without a look at its scales; one with any other goes the general
// way (wide_product.hpp). Groups of zeros have byte 127, and those whose scale is NaN are NaN in
// all values.
//
// With weights of 0.5 to 6 times 2^0 to 2^kLargestFoldedShift, every product of folded operands is
// a multiple of 2^(-9 - 64 - 1) and below 2^(9 + 16 + 3 + 32): sums over any K are exact multiples
// of the one and far from overflow, and nothing is subnormal on the way.
inline constexpr int kLeastFoldedExponent = -64;
inline constexpr int kLargestFoldedExponent = 16;

constexpr bool is_folded(Ue8m0 scale) {
  constexpr std::uint8_t kLeast = kLeastFoldedExponent + Ue8m0::kBias;
  constexpr std::uint8_t kRange = kLargestFoldedExponent - kLeastFoldedExponent;
  return is_nan(scale) || static_cast<std::uint8_t>(scale.bits - kLeast) <= kRange;
}
static_assert(is_folded({63}) && !is_folded({62}) && is_folded({143}) && !is_folded({144}));

// The exponent that a group's values still have to be scaled with.
constexpr int remaining_exponent(Ue8m0 scale) {
  return is_folded(scale) ? 0 : scale.exponent();
}

constexpr std::size_t row_scales_offset(int k) {
  return 2 * static_cast<std::size_t>(k);
}

// The least distance between rows, a multiple of 64; 64-byte aligned rows, please.
constexpr std::size_t row_bytes(int k) {
  return align_up(row_scales_offset(k) + static_cast<std::size_t>(k) / kGroupSize, std::size_t{64});
}

inline const std::uint8_t* row_scales(const std::byte* row, int k) {
  return reinterpret_cast<const std::uint8_t*>(row + row_scales_offset(k));
}

// In byte arithmetic throughout, for the compiler to take many scales at a time.
inline bool has_folded_scales(const std::byte* row, int k) {
  const std::uint8_t* scales = row_scales(row, k);
  std::uint8_t unfolded = 0;
  for (int group = 0; group < k / kGroupSize; ++group)
    unfolded = static_cast<std::uint8_t>(unfolded | (is_folded({scales[group]}) ? 0 : 1));
  return unfolded == 0;
}

}  // namespace megamoe::cpu
