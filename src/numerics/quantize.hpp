#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "numerics/bfloat16.hpp"
#include "numerics/float8.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe {

// 32 activations as E4M3 codes under one scale.
struct QuantizedGroup {
  std::array<std::uint8_t, kGroupSize> codes{};
  Ue8m0 scale;
};

// The bits of max |v|. Magnitudes of fp32 order like their bits, with infinity and then every NaN
// on top: one integer maximum finds the largest value and whether all are finite.
constexpr std::uint32_t largest_magnitude_bits(const float* values) {
  std::uint32_t largest = 0;
  for (int i = 0; i < kGroupSize; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7FFF'FFFF;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

// The scale of a group whose largest magnitude has these bits: exponent e the least integer with
// amax <= 448 * 2^e, at least -127. 448 is 1.75 * 2^8, so that with amax = m * 2^x, 1 <= m < 2,
// e = x - 8 when m <= 1.75 and x - 7 above; the sum below carries into the exponent exactly then.
// The largest finite amax gives byte 247, so no finite group leaves the format. Amax 0 gives byte
// 127, a NaN or an infinity byte 255.
constexpr Ue8m0 activation_scale(std::uint32_t amax_bits) {
  if (amax_bits == 0) return {Ue8m0::kBias};
  if (amax_bits >= 0x7F80'0000) return {Ue8m0::kNan};
  const std::uint32_t exponent = (amax_bits + 0x1F'FFFF) >> 23;
  return {static_cast<std::uint8_t>(exponent < 8 ? 0 : exponent - 8)};
}

// Quantises 32 values. Multiplying by 2^-e is exact, except where the product is an fp32 subnormal,
// and those are far below half of the least code: every code is rounded once. (Flushing subnormal
// *inputs* to zero would break this: a group of them has e = -127 and codes that are not zero.)
// All-zero groups have codes 0x00, negative zeros included; a NaN or an infinity makes all codes
// NaN.
constexpr QuantizedGroup quantize_group(const float* values) {
  const std::uint32_t amax_bits = largest_magnitude_bits(values);
  QuantizedGroup group;
  group.scale = activation_scale(amax_bits);
  if (amax_bits == 0) return group;
  if (is_nan(group.scale)) {
    for (std::uint8_t& code : group.codes)
      code = Float8E4M3::kNan;
    return group;
  }
  const float factor = reciprocal(group.scale);
  for (int i = 0; i < kGroupSize; ++i)
    group.codes[static_cast<unsigned>(i)] = to_float8_e4m3(values[i] * factor).bits;
  return group;
}

constexpr QuantizedGroup quantize_group(const Bfloat16* values) {
  float widened[kGroupSize] = {};
  for (int i = 0; i < kGroupSize; ++i)
    widened[i] = to_float(values[i]);
  return quantize_group(widened);
}

// Quantises `count` values, a multiple of 32, of a row of fp32 or bf16: `codes` takes `count`
// bytes, `scales` count / 32.
template <class Value>
constexpr void quantize_row(const Value* values,
                            std::int64_t count,
                            std::uint8_t* codes,
                            std::uint8_t* scales) {
  for (std::int64_t first = 0; first < count; first += kGroupSize) {
    const QuantizedGroup group = quantize_group(values + first);
    for (int i = 0; i < kGroupSize; ++i)
      codes[first + i] = group.codes[static_cast<unsigned>(i)];
    scales[first / kGroupSize] = group.scale.bits;
  }
}

static_assert(activation_scale(std::bit_cast<std::uint32_t>(448.0F)).bits == 127);
static_assert(activation_scale(std::bit_cast<std::uint32_t>(448.00003F)).bits == 128);

}  // namespace megamoe
