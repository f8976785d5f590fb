#pragma once

#include <cstdint>

#include "emulation/descriptors.hpp"

// Where a pair of CTAs finds and leaves everything: the rules that the device library executes and
// that the tile test executes on the CPU. One type, so that the test can put a wrong rule in the
// place of one of them and see that it notices.
namespace megamoe::emulation {

inline constexpr std::uint32_t kTensorLanes = 128;  // of one CTA's tensor memory
inline constexpr std::uint32_t kTensorColumns = 512;
inline constexpr std::uint32_t kLanesOfWarp = 32;
inline constexpr std::uint32_t kDepth = 32;             // K of one instruction
inline constexpr std::uint32_t kScaleBytesPerRow = 16;  // of what tcgen05.cp copies
inline constexpr std::uint32_t kCopiedColumns = 4;

// Tensor memory is addressed by lane << 16 | column; a column is 32 bits.
constexpr std::uint32_t tensor_lane(std::uint32_t address) {
  return address >> 16;
}
constexpr std::uint32_t tensor_column(std::uint32_t address) {
  return address & 0xFFFF;
}

struct RowOfCta {
  std::uint32_t cta;  // 0: the leader
  std::uint32_t row;
};

struct Hardware {
  // Byte `k_byte` of the instruction's 32 of a row. The swizzle looks at the address, so that
  // stepping along K inside a swizzled row is an addition to the start.
  static constexpr std::uint32_t operand_address(const MatrixDescriptor& d,
                                                 std::uint32_t row,
                                                 std::uint32_t k_byte) {
    const std::uint32_t group = d.start() + row / 8 * d.row_group_stride();
    if (d.swizzle() == Swizzle::k128Bytes) return swizzled(group + row % 8 * 128 + k_byte);
    return group + row % 8 * 16 + k_byte / 16 * d.leading_stride() + k_byte % 16;
  }
  static constexpr std::uint32_t swizzled(std::uint32_t address) {
    return address ^ (address >> 7 & 7) << 4;
  }

  // E2M1 beside 8-bit operands: 16 values in the first 8 of each 16 bytes, the even one low.
  static constexpr std::uint32_t float4_byte(std::uint32_t k) { return k / 16 * 16 + k % 16 / 2; }
  static constexpr std::uint32_t float4_shift(std::uint32_t k) { return k % 2 * 4; }

  // A's row m is CTA m / 128's, and so is D's. B's rows are halved over the CTAs.
  static constexpr RowOfCta b_row(std::uint32_t column, std::uint32_t columns) {
    return {column / (columns / 2), column % (columns / 2)};
  }

  // The scale of a row: lane row % 32 of every 32 lanes, one column for 32 rows, one of its four
  // bytes.
  static constexpr std::uint32_t scale_lane(std::uint32_t row) { return row % kLanesOfWarp; }
  static constexpr std::uint32_t scale_column(std::uint32_t row) { return row / kLanesOfWarp; }
  static constexpr std::uint32_t scale_byte(std::uint32_t word, std::uint32_t scale_id) {
    return word >> 8 * scale_id & 0xFF;
  }
  static constexpr std::uint32_t a_scale_id(const InstructionDescriptor& d) {
    return d.a_scale_byte();
  }
  static constexpr std::uint32_t b_scale_id(const InstructionDescriptor& d) {
    return d.b_scale_byte();
  }
  static constexpr int scale_exponent(std::uint32_t byte) { return static_cast<int>(byte) - 127; }
  static constexpr std::uint32_t columns(const InstructionDescriptor& d) { return d.columns(); }

  // tcgen05.cp .32x128b.warpx4: each CTA copies from its own shared memory.
  static constexpr std::uint32_t scales_come_from(std::uint32_t cta) { return cta; }

  // tcgen05.ld .16x256b: register i of a thread, within 16 lanes and the load's columns.
  static constexpr std::uint32_t loaded_lane(std::uint32_t thread, std::uint32_t i) {
    return thread / 4 + i / 2 % 2 * 8;
  }
  static constexpr std::uint32_t loaded_column(std::uint32_t thread, std::uint32_t i) {
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
  }
};

}  // namespace megamoe::emulation
