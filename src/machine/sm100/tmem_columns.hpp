#pragma once

#include "machine/sm100/scales.hpp"

// A CTA's columns of tensor memory: two accumulators, so that one block is finished while the next
// is multiplied, and behind them the scales of the step under way.
namespace megamoe::sm100 {

inline constexpr int kAccumulators = 2;
inline constexpr int kTmemColumnLimit = 512;

struct TmemColumns {
  int block_m;

  constexpr int accumulator(int index) const { return index * block_m; }
  constexpr int token_scales() const { return kAccumulators * block_m; }
  constexpr int token_scale_columns() const {
    return token_scale_copies(block_m) * kScaleCopyColumns;
  }
  constexpr int weight_scales() const { return token_scales() + token_scale_columns(); }
  constexpr int used() const { return weight_scales() + kScaleCopyColumns; }
  // The hardware gives powers of two, 32 at least.
  constexpr int allocated() const {
    int columns = 32;
    while (columns < used())
      columns *= 2;
    return columns;
  }
};
static_assert(TmemColumns{16}.allocated() == 64 && TmemColumns{192}.used() == 396);

}  // namespace megamoe::sm100
