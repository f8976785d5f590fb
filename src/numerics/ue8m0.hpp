#pragma once

#include <bit>
#include <cstdint>

namespace megamoe {

inline constexpr int kGroupSize = 32;  // elements along K that share one scale

// A scale: 2^(bits - 127); 255 is NaN. There is neither zero nor infinity.
struct Ue8m0 {
  std::uint8_t bits = 127;

  static constexpr std::uint8_t kNan = 255;
  static constexpr int kBias = 127;

  // Meaningless for NaN. Exponents of two operands are added as integers before scaling: the
  // product of two scales may leave the range of fp32 where the scaled sum does not.
  constexpr int exponent() const { return int{bits} - kBias; }

  constexpr bool operator==(const Ue8m0&) const = default;
};

constexpr bool is_nan(Ue8m0 scale) {
  return scale.bits == Ue8m0::kNan;
}

constexpr float to_float(Ue8m0 scale) {
  if (is_nan(scale)) return std::bit_cast<float>(0x7FC0'0000U);
  if (scale.bits == 0) return 0x1p-127F;  // a subnormal of fp32
  return std::bit_cast<float>(std::uint32_t{scale.bits} << 23);
}

// 2^-(bits - 127) as an fp32. For bits 0..253 only, where it is a normal number.
constexpr float reciprocal(Ue8m0 scale) {
  return std::bit_cast<float>((254U - scale.bits) << 23);
}

static_assert(to_float(Ue8m0{127}) == 1.0F && to_float(Ue8m0{0}) * 0x1p127F == 1.0F);
static_assert(reciprocal(Ue8m0{0}) == 0x1p127F && reciprocal(Ue8m0{253}) == 0x1p-126F);

}  // namespace megamoe
