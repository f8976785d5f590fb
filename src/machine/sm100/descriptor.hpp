#pragma once

#include <cstdint>

#include "machine/sm100/scales.hpp"
#include "machine/sm100/tile.hpp"

// What the tensor core is told, bit by bit.
namespace megamoe::sm100 {

// Shared memory as an operand, K-major:
//   bits  0-13  address / 16, inside the CTA's shared memory
//   bits 16-29  leading offset / 16: not used by these layouts
//   bits 32-45  stride between groups of eight rows / 16
//   bits 46-48  1
//   bits 49-52  0: tiles start at multiples of 1024 bytes; offsets are absolute
//   bits 61-63  swizzle: 0 none, 2 128 bytes
enum class Swizzle : std::uint64_t { kNone = 0, k128Bytes = 2 };

struct SharedLayout {
  Swizzle swizzle;
  int eight_row_stride;  // bytes

  constexpr std::uint64_t descriptor(std::uint32_t shared_address) const {
    return ((shared_address & 0x3FFFFU) >> 4) |
           static_cast<std::uint64_t>(eight_row_stride / 16) << 32 | std::uint64_t{1} << 46 |
           static_cast<std::uint64_t>(swizzle) << 61;
  }
};

// Tiles of tokens and of weights: rows of 128 bytes.
inline constexpr SharedLayout kTileLayout{Swizzle::k128Bytes, gpu::kSwizzleRows* kRowBytes};
// Scales: runs of 16 bytes, one behind the other.
inline constexpr SharedLayout kScaleLayout{Swizzle::kNone, gpu::kSwizzleRows* kScaleRunBytes};

constexpr std::uint64_t tile_descriptor(std::uint32_t shared_address) {
  constexpr SharedLayout layout = kTileLayout;
  return layout.descriptor(shared_address);
}
constexpr std::uint64_t scale_descriptor(std::uint32_t shared_address) {
  constexpr SharedLayout layout = kScaleLayout;
  return layout.descriptor(shared_address);
}

// What to add for the next instruction along K: 32 bytes of each row. The swizzle permutes by bits
// of the absolute address, so that a start inside a row is legal.
inline constexpr std::uint64_t kDescriptorNextK = kMmaDepth / 16;

// The instruction itself (kind mxf8f6f4, block-scaled, dense, K = 32, no negation, both operands
// K-major):
//   bits  4-5   which byte of B's scale words        bits 17-22  N / 8
//   bits  7-9   A's format: 5 = E2M1                 bit  23     scales are UE8M0
//   bits 10-12  B's format: 0 = E4M3                 bits 24-28  M / 16
//                                                    bits 29-30  which byte of A's scale words
constexpr std::uint32_t instruction_descriptor(int tokens) {
  constexpr std::uint32_t kE2m1 = 5;
  constexpr std::uint32_t kE4m3 = 0;
  return kE2m1 << 7 | kE4m3 << 10 | static_cast<std::uint32_t>(tokens / 8) << 17 |
         std::uint32_t{1} << 23 | static_cast<std::uint32_t>(kPairRows / 16) << 24;
}
// The same for instruction `k` 0..3 of a step, which takes byte k of both operands' scales.
constexpr std::uint32_t with_scale_byte(std::uint32_t descriptor, int k) {
  return descriptor | static_cast<std::uint32_t>(k) << 4 | static_cast<std::uint32_t>(k) << 29;
}

// The first half of a warp's 32 lanes of tensor memory, or the second, in an address.
constexpr std::uint32_t lane_half(int half) {
  return static_cast<std::uint32_t>(half * 16) << 16;
}

}  // namespace megamoe::sm100
