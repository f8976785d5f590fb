#pragma once

#include <cstdint>

#include "machine/sm100/pool_tile.hpp"

namespace megamoe::sm100 {

// One expert's linear in packed form. Codes are a plain matrix, two a byte, low nibble first, in
// the order of the packed rows: a tensor map cuts tiles of 128 rows and 128 of K out of it and
// spreads them to a byte a code on the way. Scales lie block after block, step after step, 512
// bytes each. Rows are padded to whole pairs of blocks and K to whole steps, codes with zeros and
// scales with ones.
struct WeightLayout {
  int rows = 0;   // output features of the linear (2I or H)
  int depth = 0;  // input features (H or I)

  constexpr int blocks() const { return kPairCtas * ceil_div(rows, kPairRows); }
  constexpr int steps() const { return steps_of(depth); }
  constexpr int padded_rows() const { return blocks() * kBlockRows; }
  constexpr int padded_depth() const { return steps() * kStepDepth; }
  constexpr int row_bytes() const { return padded_depth() / 2; }
  constexpr std::int64_t code_bytes() const { return std::int64_t{padded_rows()} * row_bytes(); }
  constexpr std::int64_t scale_bytes() const {
    return std::int64_t{blocks()} * steps() * kScaleCopyBytes;
  }
  // Bytes from the expert's first scale to those of a block's step.
  constexpr std::int64_t scale_offset(int block, int step) const {
    return (std::int64_t{block} * steps() + step) * kScaleCopyBytes;
  }
  bool operator==(const WeightLayout&) const = default;
};

}  // namespace megamoe::sm100
