#pragma once

#include <cstdint>

// The two descriptors of the block-scaled tcgen05 instructions, taken apart as PTX documents them.
// Who builds them is the kernel; this is the other side, so the two can disagree.
namespace megamoe::emulation {

enum class ElementFormat : std::uint32_t { kFloat8E4M3 = 0, kFloat4E2M1 = 5 };

// .kind::mxf8f6f4.block_scale; A is the weights here, B the tokens.
struct InstructionDescriptor {
  std::uint32_t bits;

  constexpr std::uint32_t field(int low, int width) const {
    return bits >> low & ((std::uint32_t{1} << width) - 1);
  }
  constexpr std::uint32_t b_scale_byte() const { return field(4, 2); }
  constexpr ElementFormat a_format() const { return ElementFormat{field(7, 3)}; }
  constexpr ElementFormat b_format() const { return ElementFormat{field(10, 3)}; }
  constexpr std::uint32_t columns() const { return field(17, 6) << 3; }  // N
  constexpr std::uint32_t rows() const { return field(24, 5) << 4; }     // M
  constexpr std::uint32_t a_scale_byte() const { return field(29, 2); }
};

// What is not a legal descriptor of a pair's dense instruction, or is one that is not emulated;
// null if nothing.
constexpr const char* what_is_wrong(const InstructionDescriptor& d) {
  constexpr auto kIsKnown = [](ElementFormat f) {
    return f == ElementFormat::kFloat8E4M3 || f == ElementFormat::kFloat4E2M1;
  };
  if (d.field(3, 1) != 0 || d.field(6, 1) != 0) return "a reserved bit is set";
  if (d.field(0, 3) != 0) return "sparse operands are not emulated";
  if (d.field(31, 1) != 0) return "K other than 32 is not this kind's";
  if (d.field(23, 1) != 1) return "scales other than UE8M0 are not emulated";
  if (!kIsKnown(d.a_format()) || !kIsKnown(d.b_format()))
    return "operands other than E4M3 and E2M1 are not emulated";
  if (d.field(13, 2) != 0) return "negated operands are not emulated";
  if (d.field(15, 2) != 0) return "operands that are not K-major are not emulated";
  if (d.rows() != 256) return "M other than 256 is not emulated for a pair of CTAs";
  if (d.columns() < 16 || d.columns() > 256 || d.columns() % 16 != 0)
    return "N of a pair is a multiple of 16, from 16 to 256";
  return nullptr;
}

enum class Swizzle : std::uint32_t { kNone = 0, k128Bytes = 2 };

// A matrix in shared memory. Addresses and strides in bytes.
struct MatrixDescriptor {
  std::uint64_t bits;

  constexpr std::uint32_t field(int low, int width) const {
    return static_cast<std::uint32_t>(bits >> low) & ((std::uint32_t{1} << width) - 1);
  }
  constexpr std::uint32_t start() const { return field(0, 14) << 4; }
  constexpr std::uint32_t leading_stride() const { return field(16, 14) << 4; }
  constexpr std::uint32_t row_group_stride() const { return field(32, 14) << 4; }  // of 8 rows
  constexpr Swizzle swizzle() const { return Swizzle{field(61, 3)}; }
};

constexpr const char* what_is_wrong(const MatrixDescriptor& d) {
  if (d.field(46, 3) != 1) return "bits 46 to 48 are not 001";
  if (d.field(49, 3) != 0) return "a base offset is not emulated: start where the swizzle repeats";
  if (d.field(52, 1) != 0) return "an absolute leading stride is not emulated";
  if (d.field(14, 2) != 0 || d.field(30, 2) != 0 || d.field(53, 8) != 0)
    return "a reserved bit is set";
  if (d.swizzle() != Swizzle::kNone && d.swizzle() != Swizzle::k128Bytes)
    return "swizzles other than none and 128 bytes are not emulated";
  return nullptr;
}

}  // namespace megamoe::emulation
