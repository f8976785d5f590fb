#pragma once

#include <cstdint>

#include "machine/sm90/pool_tile.hpp"

namespace megamoe::sm90 {

// wgmma's view of a K-major tile with 128-byte swizzle, which starts at a multiple of 1024 bytes:
//   bits  0-13  address / 16
//   bits 16-29  leading offset / 16: not used by this layout, 1 by convention
//   bits 32-45  stride between groups of eight rows / 16
//   bits 62-63  swizzle: 1 = 128 bytes
// The high word is the same for every tile, so that only the low one is computed.
constexpr std::uint32_t tile_descriptor_low(std::uint32_t shared_address) {
  return (std::uint32_t{1} << 16) | ((shared_address & 0x3FFFFU) >> 4);
}
inline constexpr std::uint32_t kTileDescriptorHigh =
    (std::uint32_t{1} << 30) | (kSwizzleRows * kSwizzleBytes / 16);

// What to add for the next wgmma along K (32 bytes of each row), and for the next bf16 panel.
inline constexpr std::uint32_t kDescriptorNextK = 32 / 16;
constexpr std::uint32_t descriptor_next_panel(int block_m) {
  return static_cast<std::uint32_t>(block_m) * kSwizzleBytes / 16;
}

}  // namespace megamoe::sm90
