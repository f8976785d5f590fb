#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "machine/cuda/canonical_linear.hpp"
#include "machine/sm90/fragment.hpp"

namespace megamoe::sm90 {

// One expert's linear in packed form: blocks of up to four slabs, step after step along K, so that
// the weights of one pipeline stage are one contiguous run, whole (4 slabs) or halved (2). The last
// block is as short as the rows are; rows and K are padded with zero codes to whole slabs and
// steps.
struct WeightLayout {
  Operands operands = Operands::kFloat8;
  int rows = 0;   // output features of the linear (2I or H)
  int depth = 0;  // input features (H or I)

  constexpr int slabs() const { return ceil_div(rows, kSlabRows); }
  constexpr int blocks() const { return ceil_div(slabs(), kBlockSlabs); }
  constexpr int steps() const { return ceil_div(depth, kStepDepth); }
  constexpr int padded_rows() const { return slabs() * kSlabRows; }
  constexpr int slabs_of(int block) const {
    // Not std::min: its reference to a constant of the host's is a trap in device code.
    const int left = slabs() - block * kBlockSlabs;
    return left < kBlockSlabs ? left : kBlockSlabs;
  }
  // Bytes from the expert's first to this block's slab at `step`.
  constexpr std::int64_t offset(int block, int step, int slab) const {
    const std::int64_t before = std::int64_t{block} * kBlockSlabs * steps();
    return (before + std::int64_t{step} * slabs_of(block) + slab) * slab_bytes(operands);
  }
  constexpr std::int64_t bytes() const {
    return std::int64_t{slabs()} * steps() * slab_bytes(operands);
  }
  bool operator==(const WeightLayout&) const = default;
};

using gpu::gate_up_row;

}  // namespace megamoe::sm90
