#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace megamoe {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kQuietNan = std::numeric_limits<float>::quiet_NaN();

inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline float next_above(float value) {
  return std::nextafter(value, kInfinity);
}
inline float next_below(float value) {
  return std::nextafter(value, -kInfinity);
}

}  // namespace megamoe
