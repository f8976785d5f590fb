#pragma once

#include <bit>
#include <cstdint>

namespace megamoe {

// E4M3, the finite-only kind: bias 7, largest value 448, no infinity, NaN is 0x7F or 0xFF.
struct Float8E4M3 {
  std::uint8_t bits = 0;

  static constexpr std::uint8_t kNan = 0x7F;      // the only NaN that a conversion makes
  static constexpr std::uint8_t kLargest = 0x7E;  // 448

  constexpr bool operator==(const Float8E4M3&) const = default;
};

constexpr bool is_nan(Float8E4M3 value) {
  return (value.bits & 0x7F) == Float8E4M3::kNan;
}

constexpr float to_float(Float8E4M3 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x80U} << 24;
  const std::uint32_t magnitude = value.bits & 0x7FU;
  if (magnitude == Float8E4M3::kNan) return std::bit_cast<float>(sign | 0x7FC0'0000U);
  if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude << 20) + (120U << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-9F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

// Rounds to nearest, ties to even; saturates to +-448, infinity included; any NaN to 0x7F.
constexpr Float8E4M3 to_float8_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
  if (magnitude > 0x7F80'0000) return {Float8E4M3::kNan};
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80);
  std::uint32_t code = 0;
  if (magnitude < std::bit_cast<std::uint32_t>(0x1p-6F)) {
    // Below the least normal value the grid is 2^-9, which is the last place of an fp32 in
    // [2^14, 2^15): the addition rounds, and its low bits are the code.
    const float on_grid = std::bit_cast<float>(magnitude) + 0x1p14F;
    code = std::bit_cast<std::uint32_t>(on_grid) - std::bit_cast<std::uint32_t>(0x1p14F);
  } else {
    const std::uint32_t is_odd = (magnitude >> 20) & 1;
    code = ((magnitude + 0x7'FFFF + is_odd) >> 20) - (120U << 3);
    if (code > Float8E4M3::kLargest) code = Float8E4M3::kLargest;
  }
  return {static_cast<std::uint8_t>(sign | code)};
}

static_assert(to_float(Float8E4M3{0x7E}) == 448.0F && to_float8_e4m3(1e9F).bits == 0x7E);

}  // namespace megamoe
