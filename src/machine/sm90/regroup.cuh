#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "machine/cuda/ptx.cuh"
#include "machine/sm90/regroup.hpp"

// The device forms of regroup.hpp: four codes at a time, through fp16, which holds every code times
// 2^-15 .. 2^15 exactly. Two factors, as one fp16 can't span a shift of 17 and more; what the
// second rounds away is far under half of the least code.
namespace megamoe::sm90 {

// Factors of one shift, each in both halves of a register.
struct CodeFactors {
  std::uint32_t first, second;

  // `binades` from -24 down nothing is left; above 17 no code needs.
  MEGAMOE_DEVICE explicit CodeFactors(int binades) {
    const int clamped = max(-28, min(binades, 28));
    const int half = clamped >> 1;
    first = float16_power(half);
    second = float16_power(clamped - half);
  }

 private:
  static MEGAMOE_DEVICE std::uint32_t float16_power(int exponent) {
    return static_cast<std::uint32_t>(exponent + 15) * 0x04000400U;
  }
};

MEGAMOE_DEVICE std::uint32_t scale_two_codes(std::uint32_t codes, const CodeFactors& by) {
  const std::uint32_t halves = ptx::float8x2_to_float16x2(codes);
  return ptx::float16x2_to_float8x2(
      ptx::multiply_float16x2(ptx::multiply_float16x2(halves, by.first), by.second));
}

MEGAMOE_DEVICE std::uint32_t scale_codes(std::uint32_t four_codes, int binades) {
  const CodeFactors by(binades);
  return scale_two_codes(four_codes & 0xFFFFU, by) | (scale_two_codes(four_codes >> 16, by) << 16);
}

// 2^exponent; subnormal at -127, and no smaller or larger one is asked for.
MEGAMOE_DEVICE float scale_value(int exponent) {
  return __uint_as_float(exponent > -127 ? static_cast<std::uint32_t>(exponent + 127) << 23
                                         : 0x00400000U);
}

// Two codes times 2^binades as bf16, exact down to 2^-133.
MEGAMOE_DEVICE std::uint32_t two_codes_to_bfloat16(std::uint32_t codes, int binades) {
  const std::uint32_t halves = ptx::float8x2_to_float16x2(codes);
  const float2 values = __half22float2(*reinterpret_cast<const __half2*>(&halves));
  const int clamped = max(-250, min(binades, 250));
  const float first = scale_value(clamped >> 1);
  const float second = scale_value(clamped - (clamped >> 1));
  return ptx::to_bfloat16x2(values.x * first * second, values.y * first * second);
}

}  // namespace megamoe::sm90
