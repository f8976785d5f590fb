#pragma once

#include "machine/cpu/tile/packed_weights.hpp"

namespace megamoe::cpu {

// The product of a pool row with a panel's 32 rows for any scales at all:
// sum over groups of 2^(ea + eb) * (A_group . B_group), the exponents added as integers before the
// group's sum is scaled. The same code, and the same bits, for every instruction set; much slower
// than the path for folded scales, and taken only where that one can't be exact.
void multiply_wide(const Panel& panel, const std::byte* row, int k, float* sums);

}  // namespace megamoe::cpu
