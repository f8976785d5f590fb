#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "numerics/float4.hpp"
#include "numerics/quantize.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe {

// 32 weights as E2M1 codes, two in a byte, under one scale.
struct Mxfp4Group {
  std::array<std::uint8_t, kGroupSize / 2> packed{};
  Ue8m0 scale;
};

// What quantising lost, summed over as many groups as a caller likes.
struct QuantizationError {
  double squared_error = 0;
  double squared_norm = 0;

  constexpr QuantizationError& operator+=(const QuantizationError& other) {
    squared_error += other.squared_error;
    squared_norm += other.squared_norm;
    return *this;
  }
  // ||quantised - given|| / ||given||; 0 where all that was given is zero.
  double relative_l2() const {
    return squared_norm == 0 ? 0 : std::sqrt(squared_error / squared_norm);
  }
};

// The least exponent with amax <= 6 * 2^e (6 is 1.5 * 2^2): nothing saturates. At least -127.
constexpr Ue8m0 weight_scale(std::uint32_t amax_bits) {
  if (amax_bits == 0) return {Ue8m0::kBias};
  if (amax_bits >= 0x7F80'0000) return {Ue8m0::kNan};
  const std::uint32_t exponent = (amax_bits + 0x3F'FFFF) >> 23;
  return {static_cast<std::uint8_t>(exponent < 2 ? 0 : exponent - 2)};
}

constexpr Mxfp4Group encode_mxfp4(const float* values, Ue8m0 scale) {
  Mxfp4Group group;
  group.scale = scale;
  const float factor = reciprocal(scale);
  for (int i = 0; i < kGroupSize; i += 2) {
    const Float4E2M1 even = to_float4_e2m1(values[i] * factor);
    const Float4E2M1 odd = to_float4_e2m1(values[i + 1] * factor);
    group.packed[static_cast<unsigned>(i / 2)] = pack_float4(even, odd);
  }
  return group;
}

constexpr QuantizationError error_of(const Mxfp4Group& group, const float* values) {
  QuantizationError error;
  const double scale = to_float(group.scale);
  for (int i = 0; i < kGroupSize; ++i) {
    const std::uint8_t pair = group.packed[static_cast<unsigned>(i / 2)];
    const double code = to_float(i % 2 == 0 ? even_float4(pair) : odd_float4(pair));
    const double difference = code * scale - values[i];
    error.squared_error += difference * difference;
    error.squared_norm += static_cast<double>(values[i]) * values[i];
  }
  return error;
}

// Quantises 32 weights by the better of two scales: the least that saturates nothing, and half of
// it, which saturates the few largest and places the others on a grid twice as fine. The lesser
// squared error wins, the larger scale on a tie. (The OCP rule, floor(log2 amax) - 2, is always one
// of the two and often the worse.) Values that were MXFP4 before come back unchanged. A NaN or an
// infinity in the group gives scale NaN and codes 0.
constexpr Mxfp4Group quantize_group_to_mxfp4(const float* values) {
  const Ue8m0 wide = weight_scale(largest_magnitude_bits(values));
  if (is_nan(wide)) return {.packed = {}, .scale = wide};
  const Mxfp4Group unsaturated = encode_mxfp4(values, wide);
  if (wide.bits == 0) return unsaturated;
  const Mxfp4Group finer = encode_mxfp4(values, {static_cast<std::uint8_t>(wide.bits - 1)});
  const bool finer_is_better =
      error_of(finer, values).squared_error < error_of(unsaturated, values).squared_error;
  return finer_is_better ? finer : unsaturated;
}

// Quantises `count` values, a multiple of 32, of a row: `packed` takes count / 2 bytes, `scales`
// count / 32. Returns the error of the row; a group that is not finite counts nothing in it.
constexpr QuantizationError quantize_row_to_mxfp4(const float* values,
                                                  std::int64_t count,
                                                  std::uint8_t* packed,
                                                  std::uint8_t* scales) {
  QuantizationError error;
  for (std::int64_t first = 0; first < count; first += kGroupSize) {
    const Mxfp4Group group = quantize_group_to_mxfp4(values + first);
    for (int i = 0; i < kGroupSize / 2; ++i)
      packed[first / 2 + i] = group.packed[static_cast<unsigned>(i)];
    scales[first / kGroupSize] = group.scale.bits;
    if (!is_nan(group.scale)) error += error_of(group, values + first);
  }
  return error;
}

}  // namespace megamoe
