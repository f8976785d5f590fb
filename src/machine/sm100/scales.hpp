#pragma once

#include <cstdint>

#include "base/math.hpp"
#include "machine/sm100/tile.hpp"

// How scales lie in memory. A step's four UE8M0 bytes of one row are a 32-bit word, byte j for
// values 32j .. 32j + 31. One copy into tensor memory takes 512 bytes: the words of 128 rows, as 32
// runs of 16 bytes. Run i becomes lane i (and i + 32, i + 64, i + 96) of four columns, so that row
// r must be word r / 32 of run r % 32.
namespace megamoe::sm100 {

inline constexpr int kScaleRows = 128;
inline constexpr int kScaleCopyBytes = kScaleRows * 4;
inline constexpr int kScaleRunBytes = 16;
inline constexpr int kScaleCopyColumns = 4;
inline constexpr int kLanesPerColumn = 32;  // rows whose scales one column of tensor memory holds

// Of a padding group: 1, as a NaN would spoil the sum and codes there are zeros.
inline constexpr std::uint8_t kPaddingScale = 127;

// The word of a row among its step's.
constexpr int scale_word(int row) {
  const int in_copy = row % kScaleRows;
  return row / kScaleRows * kScaleRows + in_copy % kLanesPerColumn * 4 + in_copy / kLanesPerColumn;
}

// Bytes of the scales of `block_m` tokens for one step, in the pool and as they are copied to
// shared memory. Sixteen tokens fill half of the runs; the other half is never multiplied.
constexpr int token_scale_bytes(int block_m) {
  if (block_m < kLanesPerColumn) return block_m * kScaleRunBytes;
  return ceil_div(block_m, kScaleRows) * kScaleCopyBytes;
}
constexpr int token_scale_copies(int block_m) {
  return ceil_div(block_m, kScaleRows);
}
// What a pool row has for them in every plan: the most that a block takes, by its rows.
inline constexpr int kScaleBytesPerRowAndStep = kScaleRunBytes;
static_assert(token_scale_bytes(16) == 16 * kScaleBytesPerRowAndStep);
static_assert(token_scale_bytes(32) == 32 * kScaleBytesPerRowAndStep);
static_assert(token_scale_bytes(192) <= 192 * kScaleBytesPerRowAndStep);
static_assert(scale_word(0) == 0 && scale_word(1) == 4 && scale_word(33) == 5);
static_assert(scale_word(127) == 127 && scale_word(128) == 128);

}  // namespace megamoe::sm100
