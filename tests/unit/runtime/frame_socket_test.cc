#include "runtime/group/frame_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace megamoe {
namespace {

class FrameSocketTest : public testing::Test {
 protected:
  FrameSocketTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    left_ = FrameSocket(FileHandle(ends[0]));
    right_ = FrameSocket(FileHandle(ends[1]));
  }
  FrameSocket left_, right_;
  const Deadline soon_{5000};
};

TEST_F(FrameSocketTest, CarriesFramesInOrder) {
  const std::string large(3'000'000, 'x');
  std::thread sender([&] {
    left_.send(FrameKind::kOffer, "one", {}, soon_);
    left_.send(FrameKind::kResult, large, {}, soon_);
    left_.send(FrameKind::kRefusal, "", {}, soon_);
  });
  Frame frame;
  ASSERT_EQ(right_.receive(frame, soon_), Transfer::kDone);
  EXPECT_EQ(frame.kind, FrameKind::kOffer);
  EXPECT_EQ(frame.body, "one");
  ASSERT_EQ(right_.receive(frame, soon_), Transfer::kDone);
  EXPECT_EQ(frame.body, large);
  ASSERT_EQ(right_.receive(frame, soon_), Transfer::kDone);
  EXPECT_EQ(frame.kind, FrameKind::kRefusal);
  EXPECT_EQ(frame.body, "");
  sender.join();
}

TEST_F(FrameSocketTest, CarriesDescriptorsWithTheirFrame) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileHandle reader(ends[0]);
  const FileHandle writer(ends[1]);
  ASSERT_EQ(left_.send(FrameKind::kOffer, "none", {}, soon_), Transfer::kDone);
  ASSERT_EQ(left_.send(FrameKind::kOffer, "two", {ends[1], ends[0]}, soon_), Transfer::kDone);
  Frame frame;
  ASSERT_EQ(right_.receive(frame, soon_), Transfer::kDone);
  EXPECT_TRUE(frame.handles.empty());
  ASSERT_EQ(right_.receive(frame, soon_), Transfer::kDone);
  ASSERT_EQ(frame.handles.size(), 2U);
  ASSERT_EQ(write(frame.handles[0].get(), "z", 1), 1);
  char byte = 0;
  ASSERT_EQ(read(reader.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'z');
}

TEST_F(FrameSocketTest, AnEndIsSeenAndRaisesNoSignal) {
  right_.close();
  Frame frame;
  EXPECT_EQ(left_.receive(frame, soon_), Transfer::kClosed);
  EXPECT_EQ(left_.send(FrameKind::kOffer, "x", {}, soon_), Transfer::kClosed);
}

TEST_F(FrameSocketTest, SilenceEndsAtTheDeadline) {
  Frame frame;
  EXPECT_EQ(left_.receive(frame, Deadline(1)), Transfer::kExpired);
}

TEST_F(FrameSocketTest, AReaderThatDoesNotReadEndsAtTheDeadline) {
  EXPECT_EQ(left_.send(FrameKind::kOffer, std::string(50'000'000, 'x'), {}, Deadline(1)),
            Transfer::kExpired);
}

TEST_F(FrameSocketTest, WhatIsNoFrameIsRefusedBeforeAnythingIsReserved) {
  const std::array<std::uint64_t, 2> noise{0x6A6A6A6A6A6A6A6A, ~std::uint64_t{0}};
  ASSERT_EQ(write(right_.descriptor(), noise.data(), sizeof noise), 16);
  Frame frame;
  EXPECT_EQ(left_.receive(frame, soon_), Transfer::kMalformed);
}

TEST_F(FrameSocketTest, KnowsItsOwnUser) {
  EXPECT_TRUE(left_.is_same_user());
}

}  // namespace
}  // namespace megamoe
