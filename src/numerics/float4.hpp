#pragma once

#include <bit>
#include <cstdint>

namespace megamoe {

// E2M1: +-{0, 0.5, 1, 1.5, 2, 3, 4, 6} in the low nibble (bit 3 is the sign). Neither NaN nor
// infinity.
struct Float4E2M1 {
  std::uint8_t bits = 0;

  constexpr bool operator==(const Float4E2M1&) const = default;
};

constexpr float to_float(Float4E2M1 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 8U} << 28;
  const std::uint32_t magnitude = value.bits & 7U;
  if (magnitude >= 2) return std::bit_cast<float>(sign | ((magnitude << 22) + (126U << 23)));
  return std::bit_cast<float>(sign | (magnitude * std::bit_cast<std::uint32_t>(0.5F)));
}

// Rounds to nearest, ties to even; saturates to +-6. The format has no NaN: a NaN saturates as an
// infinity of its sign does, and who may meet one marks it in the scale (quantize_group_to_mxfp4).
constexpr Float4E2M1 to_float4_e2m1(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
  const auto sign = static_cast<std::uint8_t>((bits >> 28) & 8);
  std::uint32_t code = 0;
  if (magnitude < std::bit_cast<std::uint32_t>(1.0F)) {
    // Below 1 the grid is 0.5, the last place of an fp32 in [2^22, 2^23).
    const float on_grid = std::bit_cast<float>(magnitude) + 0x1p22F;
    code = std::bit_cast<std::uint32_t>(on_grid) - std::bit_cast<std::uint32_t>(0x1p22F);
  } else {
    const std::uint32_t is_odd = (magnitude >> 22) & 1;
    code = ((magnitude + 0x1F'FFFF + is_odd) >> 22) - (126U << 1);
    if (code > 7) code = 7;
  }
  return {static_cast<std::uint8_t>(sign | code)};
}

// Two codes in a byte: the low nibble is the one with the even index.
constexpr std::uint8_t pack_float4(Float4E2M1 even, Float4E2M1 odd) {
  return static_cast<std::uint8_t>((even.bits & 0xF) | ((odd.bits & 0xF) << 4));
}
constexpr Float4E2M1 even_float4(std::uint8_t pair) {
  return {static_cast<std::uint8_t>(pair & 0xF)};
}
constexpr Float4E2M1 odd_float4(std::uint8_t pair) {
  return {static_cast<std::uint8_t>(pair >> 4)};
}

static_assert(to_float(Float4E2M1{7}) == 6.0F && to_float(Float4E2M1{9}) == -0.5F);
static_assert(to_float4_e2m1(2.5F).bits == 4 && to_float4_e2m1(3.5F).bits == 6);

}  // namespace megamoe
