#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/sm90/operands.hpp"

// Bringing the power-of-two scales of a token row to one exponent per range. E4M3 has 15 binades of
// normal numbers and 3 of subnormals: a group within 2^-14 of the range's peak loses nothing, below
// that the error is at most half a subnormal, 2^-10 / 224 of the range's largest value. A
// range is a whole row of either linear, whatever the plan.
namespace megamoe::sm90 {

inline constexpr std::uint8_t kNanCode = 0x7F;
inline constexpr std::uint8_t kNanScaleByte = 255;

// E4M3 code times 2^binades, rounded to nearest even. The caller knows that it can't overflow.
constexpr std::uint8_t scale_code(std::uint8_t code, int binades) {
  const int magnitude = code & 0x7F;
  const int sign = code & 0x80;
  if (magnitude == kNanCode) return kNanCode;
  if (magnitude == 0) return code;
  int exponent = std::max(magnitude >> 3, 1);
  int significand = magnitude >= 8 ? 8 + (magnitude & 7) : magnitude;
  for (; significand < 8; significand *= 2)
    --exponent;
  exponent += binades;
  if (exponent >= 1) return static_cast<std::uint8_t>(sign | (exponent << 3) | (significand & 7));
  const int drop = std::min(1 - exponent, 8);
  const int kept = significand >> drop;
  const int rest = significand & ((1 << drop) - 1);
  const int tie = 1 << (drop - 1);
  const bool up = rest > tie || (rest == tie && (kept & 1) != 0);
  return static_cast<std::uint8_t>(sign | (kept + (up ? 1 : 0)));
}

// How far a group with this largest magnitude (code without sign, 1..0x7E) is under a normalised
// one: 448 * 2^-d is the least that holds it.
constexpr int headroom(int magnitude) {
  if (magnitude >= 8) return (0x7E - magnitude) / 8;
  return magnitude >= 4 ? 15 : magnitude >= 2 ? 16 : 17;
}

// Under every exponent that a group can ask for.
inline constexpr int kNothingAsked = -1024;

// The exponent that a group asks of its range: taken from its largest code and not from the scale
// alone, since codes may come unnormalised. kNothingAsked for a group that must not count: zeros,
// or a NaN scale.
constexpr int asked_exponent(int largest_magnitude, std::uint8_t scale) {
  if (scale == kNanScaleByte || largest_magnitude == 0) return kNothingAsked;
  return scale - 127 - headroom(std::min(largest_magnitude, 0x7E));
}

// A range in which no group asks for an exponent holds zeros and NaN only: any will do.
constexpr int settled_exponent(int largest_asked) {
  return largest_asked == kNothingAsked ? 0 : largest_asked;
}

// One group on its way to a range's exponent.
struct GroupShift {
  int binades;
  bool is_nan;
};

constexpr GroupShift shift_of(std::uint8_t scale, int range_exponent) {
  return {scale - 127 - range_exponent, scale == kNanScaleByte};
}

constexpr std::uint8_t regrouped(std::uint8_t code, const GroupShift& shift) {
  return shift.is_nan ? kNanCode : scale_code(code, shift.binades);
}

}  // namespace megamoe::sm90
