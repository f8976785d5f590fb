#include "runtime/memory/segment.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "megamoe/error.hpp"

namespace megamoe {
namespace {

TEST(SegmentTest, ANewOneIsZeroAndPageAligned) {
  for (const auto& segment : {Segment::anonymous(10'000), Segment::shareable(10'000)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->base()) % 4096, 0U);
    for (std::uint64_t i = 0; i < segment->bytes(); ++i)
      ASSERT_EQ(segment->base()[i], std::byte{0});
  }
}

TEST(SegmentTest, AReceivedOneIsTheSameMemory) {
  const auto mine = Segment::shareable(4096);
  const auto theirs = Segment::received(FileHandle(dup(mine->descriptor())), 4096);
  mine->base()[17] = std::byte{5};
  EXPECT_EQ(theirs->base()[17], std::byte{5});
  EXPECT_NE(theirs->base(), mine->base());
}

// The pages are there before anybody touches them.
TEST(SegmentTest, AShareableOneIsReservedUpFront) {
  const auto segment = Segment::shareable(1 << 20);
  struct stat status {};
  ASSERT_EQ(fstat(segment->descriptor(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 1 << 20);
}

TEST(SegmentTest, OneOfAnotherSizeIsRefused) {
  const auto mine = Segment::shareable(4096);
  EXPECT_THROW(Segment::received(FileHandle(dup(mine->descriptor())), 8192), Error);
}

TEST(SegmentTest, AnAdoptedOneIsTheCallersToFree) {
  std::byte memory[64] = {};
  EXPECT_EQ(Segment::adopted(memory, 64)->base(), memory);
  memory[0] = std::byte{1};
}

}  // namespace
}  // namespace megamoe
