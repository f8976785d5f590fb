#pragma once

#include <bit>
#include <cstdint>

namespace megamoe {

// The upper half of an fp32: 8 exponent bits, 7 mantissa bits.
struct Bfloat16 {
  std::uint16_t bits = 0;

  static constexpr std::uint16_t kNan = 0x7FC0;  // the only NaN that a conversion makes

  constexpr bool operator==(const Bfloat16&) const = default;
};

constexpr float to_float(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// NaN by the bits, so that no compiler flag can fold the question away.
constexpr bool is_nan(Bfloat16 value) {
  return (value.bits & 0x7FFF) > 0x7F80;
}

// Rounds to nearest, ties to even; beyond the largest finite value to infinity; any NaN to kNan.
constexpr Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFF'FFFF) > 0x7F80'0000) return {Bfloat16::kNan};
  const std::uint32_t is_odd = (bits >> 16) & 1;
  return {static_cast<std::uint16_t>((bits + 0x7FFF + is_odd) >> 16)};
}

static_assert(to_bfloat16(1.0F).bits == 0x3F80 && to_float(Bfloat16{0xC000}) == -2.0F);

}  // namespace megamoe
