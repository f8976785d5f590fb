#pragma once

#include <cstdint>

#include "machine/sm90/pool_tile.hpp"

namespace megamoe::sm90 {

// wgmma's view of a K-major tile with 128-byte swizzle, which starts at a multiple of 1024 bytes:
//   bits  0-13  address / 16
//   bits 16-29  leading offset / 16: not used by this layout, 1 by convention
//   bits 32-45  stride between groups of eight rows / 16
//   bits 62-63  swizzle: 1 = 128 bytes
constexpr std::uint64_t tile_descriptor(std::uint32_t shared_address) {
  constexpr std::uint64_t kLeading = std::uint64_t{1} << 16;
  constexpr std::uint64_t kStride = std::uint64_t{kSwizzleRows * kSwizzleBytes / 16} << 32;
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  return kSwizzle128 | kStride | kLeading | ((shared_address & 0x3FFFFU) >> 4);
}

// What to add for the next wgmma along K (32 bytes of each row), and for the next bf16 panel.
inline constexpr std::uint64_t kDescriptorNextK = 32 / 16;
constexpr std::uint64_t descriptor_next_panel(int block_m) {
  return static_cast<std::uint64_t>(block_m) * kSwizzleBytes / 16;
}

}  // namespace megamoe::sm90
