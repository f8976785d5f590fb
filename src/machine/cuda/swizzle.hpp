#pragma once

// The tile that tensor cores of both machines read: rows of 128 bytes along K, whose 16-byte chunks
// are permuted by the row, in groups of eight rows.
namespace megamoe::gpu {

inline constexpr int kSwizzleBytes = 128;
inline constexpr int kChunkBytes = 16;
inline constexpr int kSwizzleRows = 8;

// Where chunk 0..7 of a row lies in a tile that starts at a multiple of 1024 bytes.
constexpr int swizzled_offset(int row, int chunk) {
  return row * kSwizzleBytes + (chunk ^ (row % kSwizzleRows)) * kChunkBytes;
}
static_assert(swizzled_offset(0, 3) == 48 && swizzled_offset(9, 3) == 9 * 128 + 32);

}  // namespace megamoe::gpu
