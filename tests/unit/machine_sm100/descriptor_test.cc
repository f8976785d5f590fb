#include "machine/sm100/descriptor.hpp"

#include <gtest/gtest.h>

namespace megamoe::sm100 {
namespace {

std::uint64_t bits(std::uint64_t word, int first, int last) {
  return word >> first & ((std::uint64_t{1} << (last - first + 1)) - 1);
}

// Each field of the shared-memory descriptor where the instruction set says it is, and nothing
// else.
TEST(SharedDescriptor, HasItsFields) {
  const std::uint32_t address = 0x1234'0 | 0x2'0000;
  for (const bool is_tile : {true, false}) {
    const SharedLayout layout = is_tile ? kTileLayout : kScaleLayout;
    const std::uint64_t d = layout.descriptor(0x0100'0000 | address);
    EXPECT_EQ(bits(d, 0, 13), address / 16) << "the CTA's number in the cluster is not part of it";
    EXPECT_EQ(bits(d, 16, 29), 0U);
    EXPECT_EQ(bits(d, 32, 45), is_tile ? 1024 / 16 : 128 / 16);
    EXPECT_EQ(bits(d, 46, 48), 1U);
    EXPECT_EQ(bits(d, 49, 52), 0U);
    EXPECT_EQ(bits(d, 53, 60), 0U);
    EXPECT_EQ(bits(d, 61, 63), is_tile ? 2U : 0U);
    EXPECT_EQ(bits(d, 14, 15), 0U);
    EXPECT_EQ(bits(d, 30, 31), 0U);
  }
}

// Four steps of 32 bytes stay inside the 128-byte row and don't disturb other fields.
TEST(SharedDescriptor, StepsAlongK) {
  const std::uint64_t first = kTileLayout.descriptor(0x4400);
  for (int k = 0; k < kMmasPerStep; ++k) {
    const auto step = static_cast<std::uint64_t>(k);
    EXPECT_EQ(first + step * kDescriptorNextK,
              kTileLayout.descriptor(0x4400 + 32 * static_cast<std::uint32_t>(k)));
  }
}

TEST(InstructionDescriptor, HasItsFields) {
  for (int tokens = 16; tokens <= 192; tokens += 16) {
    for (int k = 0; k < kMmasPerStep; ++k) {
      const std::uint32_t d = with_scale_byte(instruction_descriptor(tokens), k);
      const auto byte = static_cast<unsigned>(k);
      EXPECT_EQ(bits(d, 0, 3), 0U);
      EXPECT_EQ(bits(d, 4, 5), byte);
      EXPECT_EQ(bits(d, 6, 6), 0U);
      EXPECT_EQ(bits(d, 7, 9), 5U) << "weights are E2M1";
      EXPECT_EQ(bits(d, 10, 12), 0U) << "tokens are E4M3";
      EXPECT_EQ(bits(d, 13, 16), 0U);
      EXPECT_EQ(bits(d, 17, 22), static_cast<unsigned>(tokens / 8));
      EXPECT_EQ(bits(d, 23, 23), 1U);
      EXPECT_EQ(bits(d, 24, 28), 256U / 16);
      EXPECT_EQ(bits(d, 29, 30), byte);
      EXPECT_EQ(bits(d, 31, 31), 0U);
    }
  }
}

}  // namespace
}  // namespace megamoe::sm100
