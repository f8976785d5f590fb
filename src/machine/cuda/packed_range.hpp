#pragma once

namespace megamoe::gpu {

// Some of the pieces that a packed linear consists of (slabs, blocks of rows). Pieces lie apart, so
// that threads may pack different ones at the same time.
struct PackedRange {
  int first = 0;
  int count = 0;

  constexpr int end() const { return first + count; }
};

}  // namespace megamoe::gpu
