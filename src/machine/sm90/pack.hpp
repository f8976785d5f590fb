#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "machine/sm90/weight_layout.hpp"

namespace megamoe::sm90 {

// A row's groups are stored relative to one base exponent, which the epilogue applies:
//   kFloat8    decoded = e2m1 * 2^(field - 5), field 0..11: every product is an exact E4M3
//   kBfloat16  decoded = e2m1 * 2^(field - 253), field 1..254
// The largest group of a row with a code other than zero gets the top field.
inline constexpr int kTopField8 = 11;
inline constexpr int kFieldBias8 = 5;
inline constexpr int kTopField16 = 254;
inline constexpr int kFieldBias16 = 253;

// The base of a row in which a group's scale is NaN: every output of that row is NaN.
inline constexpr std::int16_t kNanBase = std::numeric_limits<std::int16_t>::min();

struct RowRange {
  int base = 0;  // true exponent of a group = base + field - bias
  bool is_nan = false;
  bool fits = true;  // every group's field is in its range
};

using gpu::CanonicalLinear;
using gpu::CanonicalRow;

RowRange range_of(Operands operands, const CanonicalRow& row);

// Whether kFloat8 can hold every row exactly. If not, the layer runs with kBfloat16: nothing is
// flushed.
bool fits_float8(const WeightLayout& layout, const CanonicalLinear& linear);

// Writes layout.bytes() of codes and layout.padded_rows() bases. Throws Error(kInvalidArgument)
// naming the row when the linear doesn't fit the layout's operands.
void pack(const WeightLayout& layout,
          const CanonicalLinear& linear,
          std::span<std::byte> packed,
          std::span<std::int16_t> bases);

}  // namespace megamoe::sm90
