#pragma once

#include <span>

#include "machine/cpu/tile/tile.hpp"

namespace megamoe::cpu {

// The products of pool rows with a panel's 32 rows for any scales at all:
// sum over groups of 2^(ea + eb) * (A_group . B_group), the exponents added as integers before the
// group's sum is scaled. The same code, and the same bits, for every instruction set; much slower
// than the path for folded scales, and taken only where that one can't be exact.
struct WideProduct {
  Panel panel;
  int k;
  PoolRows rows;
  std::span<const int> wanted;  // which of the rows
  float* sums;                  // 32 of row i begin at sums + i * TileScratch::kSumStride
};

void multiply_wide(const WideProduct& product);

}  // namespace megamoe::cpu
